// Package forward connects to a port of the guest from inside the pod, for users that have
// the port forwarded to them.
//
// The way to the guest is the handler's, which made it when it bound the interface. A
// connection is bound to the link that leads to the guest, so the kernel sends what it carries
// to no other: neither another address of the pod nor a route leads it elsewhere. No name is
// resolved.
//
// The package is an edge: it touches sockets of TCP and UDP.
package forward
