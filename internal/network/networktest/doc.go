// Package networktest makes network namespaces for tests: a node, a pod, further
// networks of the pod, and a guest that is attached to the pod's tap devices as
// QEMU attaches it.
//
// It is for tests alone. It needs root, and iproute2's program ip.
package networktest
