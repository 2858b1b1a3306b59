// Package subresource answers the verbs of VMs and VMIs: the aggregated API
// subresources.kubevirt.io.
//
// A [Server] authenticates the API server's aggregator, and authorizes its user by package
// frontproxy. It reads the objects, and [github.com/podvisor/podvisor/internal/vmi/verb]
// decides what the verb does. The Server then patches the objects, calls the launcher or
// opens a stream through [github.com/podvisor/podvisor/scheduler/guest.Guests]. A port of
// a guest is such a stream. It is joined with a websocket of the client.
//
// An API of another group has the same of package frontproxy, of [Join], and of
// [github.com/podvisor/podvisor/scheduler/guest].
//
// Every failure is a metav1.Status of at most 1,024 bytes, as clients read no more.
//
// The package is a controller: it joins clients of the API server with the nodes.
package subresource
