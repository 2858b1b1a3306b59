// Package websocket carries a stream of bytes, or datagrams, in a websocket (RFC 6455) of
// the subprotocol [vmi.StreamProtocol]. [Dial] and [Accept] make its two ends as a [Conn],
// which is a net.Conn. [Upgrade] makes a [Link], which joins a client with a net.Conn that
// is there already.
//
// The protocol is that of github.com/gorilla/websocket. Here is what all streams of the
// subresource API share: binary messages only, text messages dropped, no compression, one
// size of the largest message, pings, the limit of silence, and how a stream ends. [Dial]
// sends the request by an http.RoundTripper, so that the transport of a client, with its
// proxies, certificates and tokens, serves for streams too. Package
// k8s.io/client-go/transport/websocket does not do that: it makes its own connections, past
// the Dial and Transport of a rest.Config, and keeps 1,024 bytes of a refusal.
//
// A Link of bytes that carries nothing holds a buffer of 1 KiB and those of its connection,
// one of datagrams 64 KiB.
//
// Traps: a Conn that is not read answers no pings, and the peer may end it for that.
package websocket
