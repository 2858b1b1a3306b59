// Package vmi is the model: the kinds of the API group kubevirt.io, version v1, as Go
// types.
//
// [VirtualMachineInstance] (VMI) is one running virtual machine. [VirtualMachine] (VM) is
// one that can be started and stopped, and [VirtualMachineInstanceReplicaSet] is a number
// of equal VMIs. [VirtualMachineInstanceMigration] moves a VMI to another node, and
// [KubeVirt] is the cluster's configuration. Their JSON is that of KubeVirt: names, types
// and list semantics are the same, so manifests and clients written for KubeVirt work with
// it. What pods and claims are made of (affinity, tolerations, DNS, probes, resources,
// references) has the types of k8s.io/api/core/v1, as in KubeVirt's own API.
//
// Not every field that has a type is served. A comment line that begins with
// +podvisor:unserved= keeps a field, a value or a kind out of the schema until its effect
// is built. docs/fields.md lists them all, and package vmi/served finds them in an object.
// Defaults and validation cover served and unserved fields alike.
//
// The package holds data and the functions that read it. It calls no API and imports
// nothing else of this module; clients are in vmi/client.
//
// Traps: a Go zero value is not a default. Fields that the user left out are zero or nil
// here, and package vmi/defaults completes them. Use accessors such as
// [VirtualMachineInstance.GracePeriod] where they exist.
package vmi

// +kubebuilder:object:generate=true
// +kubebuilder:ac:generate=true
// +kubebuilder:ac:output:package=applyconfiguration
// +groupName=kubevirt.io
// +versionName=v1
