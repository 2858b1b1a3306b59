// Package validate says what is wrong with an object.
//
// It is the only validation: admission, virt-controller and embedders call the same
// functions. [Instance], [VirtualMachine], [ReplicaSet] and [Migration] check an object
// that is created. The functions that end in Update check its changes, and [Spec] checks
// the spec of a VMI. [MigrationOf] and [VolumeRequests] check what other objects decide,
// and get them as arguments. Each returns every fault at once, with the path of the field;
// [Causes] makes of them what an API server answers. Defaults are expected to be applied
// (package vmi/defaults).
//
// What a cluster allows is a [Limits], and the requester is a [User]: there is no client
// and no global state. The package computes; it touches nothing.
//
// Field names and kinds of fault are those of KubeVirt, since clients show them next to
// the field. Where KubeVirt's name of a field is not its path, the message begins with the
// path. A fault that no single field can correct has no field.
package validate
