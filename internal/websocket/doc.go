// Package websocket carries a stream of bytes, or datagrams, in a websocket
// (RFC 6455): [Dial] and [Accept] make the two ends of a [Conn], which is a net.Conn.
//
// It is for the streams of the subresource API: binary messages only, no extensions, no
// compression. Text messages are dropped. It uses the standard library alone, because
// package vmi/client uses it and the programs of others link that. [Dial] sends the
// request by an http.RoundTripper, so that the transport of a client, with its proxies,
// certificates and tokens, serves for streams too.
//
// Traps: a Conn that is not read answers no pings, and the peer may end it for that.
package websocket
