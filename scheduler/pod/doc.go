// Package pod renders the pod that a VMI runs in.
//
// [Render] turns a VMI and a [Config] into a launcher pod. [Overhead] is the memory that
// such a pod needs besides its guest's. [Name] is the pod's name, which follows from the
// VMI, so that no VMI can have two pods. The pod is accepted by namespaces that enforce
// PodSecurity "restricted".
//
// The package does not create the pod and looks at no cluster. It computes; it touches
// nothing.
//
// Traps: [Render] applies the defaults and validates, so its input may be as the user
// wrote it. Its error wraps vmi.ErrInvalid and lists every fault. A generated pod name
// (generateName) is set for its readers only: the API server uses the name.
package pod
