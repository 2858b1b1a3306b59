// Package manifest says what is wrong with manifests before they reach a cluster.
//
// [Check] takes the bytes of a manifest and returns its objects. Each is decoded strictly,
// completed and validated, as a cluster does. A cluster stops at the first value of a
// wrong type. Check finds all of them, and everything else that is wrong. A [Fault] is
// what is wrong. What is right and not served yet is separate: the fields, values and
// kinds that the API server does not have, with the reasons. A field of KubeVirt's that is
// refused on purpose is a fault with its reason.
//
// [Configuration] finds the KubeVirt of a manifest, and kinds.Configured makes of its spec
// the cluster that Check is given. The command examples/check-manifest reads files and
// prints the result.
//
// The package computes; it touches nothing.
//
// Trap: what depends on other objects of the cluster is not checked, such as whether a
// claim exists.
package manifest
