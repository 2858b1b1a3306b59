// Package control is the protocol between virt-handler and virt-launcher: JSON
// over HTTP/1.1 on a unix socket in the launcher's pod.
//
// The handler is always the client. It puts what it wants ([Desired]) and reads
// what is ([State]), once or as a stream; both are whole values, so a handler
// that starts again needs nothing but the present state.
package control
