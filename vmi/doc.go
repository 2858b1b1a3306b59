// Package vmi is the model: the kinds of the API group kubevirt.io, version v1,
// as Go types.
//
// [VirtualMachineInstance] is one running virtual machine. Its JSON is that of
// KubeVirt: names, types and list semantics are the same, so manifests and
// clients written for KubeVirt work with it. A field that is in these types and
// in the served schema has an effect; a field without effect is in neither.
//
// The package holds data and the functions that read it. It calls no API and
// imports nothing else of this module; clients are in vmi/client.
//
// Traps: a Go zero value is not a default. Fields that the user left out are
// zero or nil here and are completed by package vmi/defaults; use the
// accessors (for example [VirtualMachineInstance.GracePeriod]) where one exists.
//
// +kubebuilder:object:generate=true
// +groupName=kubevirt.io
// +versionName=v1
package vmi
