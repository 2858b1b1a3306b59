// Package control is the protocol between virt-handler and virt-launcher: JSON
// over HTTP/1.1 on a unix socket in the launcher's pod.
//
// The handler is always the client ([NewClient]). It puts what it wants
// ([Desired]) and reads what is ([State]), once or as a stream; both are whole
// values, so a handler that starts again needs nothing but the present state.
// The launcher is the server ([NewServer]).
//
//	GET /v1/state              the present State
//	GET /v1/watch              one State per line, the present one first, until Ended
//	PUT /v1/desired            a Desired; 204, or a Problem with a status from 400 on
//	GET /v1/network-namespace  with "Upgrade: network-namespace": 101 and, with its
//	                           first byte, a descriptor of the pod's network namespace
//
// A field that a peer does not know is passed over, so a handler and a launcher
// may be one release apart.
//
// The package decides nothing about machines: what to do with a Desired is its
// user's. It is an edge: it touches sockets.
//
// Trap: a server does not know when its process may end. Publish the Ended
// state and wait for [Server.Drained], for a limited time, before ending it.
package control
