// Package protocol is what virt-handler and virt-launcher say to each other about one VMI,
// as types, and what virt-controller reads and asks of both.
//
// It has four planes. State is level-triggered: the handler puts a [Desired] as a whole
// and reads a [State] as a whole, as often as it likes. Calls ([Call]) are commands that
// are acknowledged and safe to repeat. Streams ([Stream]) are connections into the pod, by
// name and never by path. Statistics ([Stats]) are asked for when metrics are read, and
// nothing follows from them.
//
// All three processes write and read these words with the code of this package. Names of
// calls and streams are in a [Path], from virt-controller to virt-handler and from there
// to the launcher. The end of a domain is in the termination message of its container
// ([End.Termination], [ParseTermination]).
//
// Handler and launcher may be one release apart, in either direction. The receiver ignores
// a field that it does not know. A field that the sender does not know is zero, which
// means what the release before did. JSON names are never changed or reused.
//
// The transport is package launcher/control. This package computes; it touches nothing.
//
// Trap: a tenant controls the launcher. The handler limits and checks what it sends. That
// is never a path, an address to dial or a number to allocate by.
package protocol
