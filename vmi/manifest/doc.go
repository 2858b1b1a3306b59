// Package manifest says what is wrong with manifests before they reach a cluster.
//
// [Check] takes the bytes of a manifest and returns its objects. Each is decoded
// strictly, completed and validated, as a cluster does; a cluster stops at the
// first value of a wrong type, here all are found. A [Fault] is what the cluster
// would refuse. A note says of a field, a value or a kind that it is right, and why
// the API server does not have it yet. A field of KubeVirt's that is refused on
// purpose is a fault with its reason.
//
// [Configuration] finds the KubeVirt of a manifest, and kinds.Configured makes of
// its spec the cluster that Check is given. The command examples/check-manifest
// reads files and prints the result.
//
// The package computes; it touches nothing.
//
// Trap: what depends on other objects of the cluster is not checked, such as
// whether a claim exists.
package manifest
