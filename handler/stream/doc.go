// Package stream carries the streams and calls of users from virt-controller to the
// virt-handler of a VMI's node: HTTP/1.1 over TLS.
//
//	POST /v1/namespaces/<ns>/instances/<name>/<uid>/calls/<call>?pod=<uid>      options as JSON; 200 with the answer, 204, or a refusal
//	GET  /v1/namespaces/<ns>/instances/<name>/<uid>/streams/<stream>?pod=<uid>  with "Upgrade: podvisor-stream": 101, then the stream
//
// A VMI has a pod on each of two nodes while it moves. So a request names the pod whose
// launcher it is for, and a handler refuses a pod that it has no session with.
//
// The paths are those of [protocol.Path]. [Server] is the handler's side, [Dialer]
// virt-controller's. Neither holds a signing key.
//
// virt-controller presents a token of its service account that Kubernetes issued for its
// pod and for the handler of one node ([Tokens], [Audience]). The server has it checked by
// a TokenReview ([Reviews]). No other server takes such a token. What does not say of
// itself that it is one is refused without a review, and sources take turns for those that
// there are.
//
// The handler makes a key and a certificate of its own when it starts ([NewCertificate]).
// The hash of the certificate is an annotation of its node, which only the handler of that
// node can write. The Dialer accepts no other certificate, and sends the token to nothing
// else. So it does not matter for trust where the address comes from: it is the one that
// the kubelet reports for the handler's pod.
//
// A handler asks the handler of another node for what a migration to it needs, as
// [Certificate.Client]:
//
//	POST .../calls/migration-prepare?pod=<uid>&migration=<uid>     and migration-finish
//	GET  .../streams/migration-memory?pod=<uid>&migration=<uid>    and migration-disks
//
// It shows no token but its own certificate, and accepts no certificate but that of the other
// one. virt-controller sends both the hashes. The server admits nothing else of a handler, and
// no caller without the certificate that was accepted for this migration, VMI and pod.
//
// The package is an edge: it touches TCP sockets, and asks the API server who calls. What
// a stream or call is it does not know: the Server has [Guests] for that.
//
// Traps: streams have no deadline once they are open; TCP keep-alive finds peers that are
// gone. What comes out of a stream is a tenant's.
package stream
