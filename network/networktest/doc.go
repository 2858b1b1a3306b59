// Package networktest makes network namespaces for tests: a node, a pod and a
// guest that is connected to the pod's tap device as QEMU would connect it.
//
// It is for tests alone. It needs root, and iproute2's program ip.
package networktest
