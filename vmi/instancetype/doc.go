// Package instancetype is the model of the API group instancetype.kubevirt.io in version
// v1beta1, and applies its objects to VMIs.
//
// An instance type says how large a VMI is: [VirtualMachineInstancetype] in a namespace,
// [VirtualMachineClusterInstancetype] in the cluster. A preference says what a VMI gets
// where its template leaves something open: [VirtualMachinePreference],
// [VirtualMachineClusterPreference].
//
// [Apply] makes the spec of a VMI of both, or lists the fields that the template and the
// instance type set both. [Expand] does that for a VM, and [Check] says too what a
// preference requires and the VM does not have.
//
// The package computes; it touches nothing. It imports only package vmi and its defaults.
// Its kinds are rows of the table in vmi/kinds. Clients are made by their definitions, such
// as [VirtualMachineInstancetypes].
//
// Traps: a field of the instance type is a fault where the template has the same, while one
// of the preference gives way. But preferredAcpi and preferredDisableHotplug replace what
// the template says. A nil and an empty nodeSelector are different things.
package instancetype

// +kubebuilder:object:generate=true
// +groupName=instancetype.kubevirt.io
// +versionName=v1beta1
