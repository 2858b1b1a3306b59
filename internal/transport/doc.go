// Package transport is what the processes say to each other over one connection, as HTTP/1.1:
// the calls and the streams of launcher/protocol.
//
// [Client] makes calls and opens streams, [Server] answers them. Both have the same paths,
// upgrade, refusals and limits, whatever the connection is: launcher/control has a unix socket
// and one VMI, handler/stream has TLS, a token and the VMIs of a node. What they do not share is
// theirs: control has the states, the Desired, the statistics and the descriptor of a namespace,
// stream reviews tokens and limits the connections of a source, and each has its own number of
// streams and its own error of a refusal. The websockets of users are another protocol, in
// internal/websocket.
//
// A refusal is a status from 400 on with a [vmi.Finding]. What a peer answers may be a
// tenant's: it is read within limits, and an error holds little of it.
package transport
