// Package control carries launcher/protocol between virt-handler and
// virt-launcher: JSON over HTTP/1.1 on a unix socket in the launcher's pod.
//
// The handler is always the client ([NewClient]), the launcher the server
// ([NewServer]).
//
//	GET  /v1/state           the present protocol.State
//	GET  /v1/watch           one State per line, the present one first, until Ended
//	GET  /v1/stats           the protocol.Stats of the domain, or a refusal
//	PUT  /v1/desired         a protocol.Desired; 204, or a refusal
//	PUT  /v1/target          the same, of a pod that waits for the VMI
//	POST /v1/calls/<call>    options as JSON; when the call is done 200 with the answer, or
//	                         204 if it has none, or a refusal
//	GET  /v1/streams/<name>  with "Upgrade: podvisor-stream": 101, then the stream; the
//	                         stream network-namespace is one descriptor, which comes
//	                         with the first byte of the 101
//
// A refusal is a status from 400 on with a vmi.Finding; the client returns it as an
// [Error].
//
// Handler and launcher may be one release apart. A server also answers
//
//	GET /v1/network-namespace  with "Upgrade: network-namespace": 101 and the descriptor
//
// which is what the release before asks for, and a client asks for it when the
// server answers 404 to the stream. A server of the release before knows no calls
// and no other streams, and no target; a client returns [protocol.ReasonUnknown] for them.
//
// The package decides nothing about domains: what a Desired, a call or a stream
// does is its user's. It is an edge: it touches sockets.
//
// Traps: a server does not know when its process may end. Publish the Ended state
// and wait for [Server.Drained], for a limited time, before ending it. A Desired
// that is refused as [protocol.ReasonStale] is not wrong: read the State and put
// the Desired again with a Generation above the State's.
package control
