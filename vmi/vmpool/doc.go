// Package vmpool is the model of the API group pool.kubevirt.io in version v1beta1:
// [VirtualMachinePool], a number of VirtualMachines that are made from one template.
//
// It holds data and the functions that read it, and imports package vmi only. Its kind is
// a row of the table in vmi/kinds, and clients of it are made by its definition
// ([VirtualMachinePools]). What becomes of the VMs is decided in scheduler/pool.
//
// Trap: a field that is not set has a default that only its method knows, as
// [VirtualMachinePoolSpec.MostUnavailable].
package vmpool

// +kubebuilder:object:generate=true
// +groupName=pool.kubevirt.io
// +versionName=v1beta1
