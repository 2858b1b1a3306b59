// Package subresource answers the verbs of VMs and VMIs: the aggregated API
// subresources.kubevirt.io.
//
// A [Server] authenticates the API server's aggregator and authorizes its user by package
// frontproxy, checks what the object's state allows, and does it: verbs of a VM change its
// run strategy or the queue status.stateChangeRequests, verbs of a VMI are called on its
// node through [Nodes], streams are joined with a websocket of the client, and port
// forwarding dials the address that Kubernetes reports of the VMI's pod.
//
// An API of another group has the same of package frontproxy, of [Join], and of a
// [github.com/podvisor/podvisor/handler/stream.Dialer], which implements [Nodes].
//
// Every failure is a metav1.Status of at most 1,024 bytes, as clients read no more.
//
// The package is a controller: it joins clients of the API server with the nodes.
package subresource
