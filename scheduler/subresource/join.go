package subresource

import (
	"cmp"
	"net"
	"net/http"
	"time"

	"github.com/podvisor/podvisor/internal/websocket"
)

// ErrNoWebsocket is wrapped by the error of [Join] for a request that asks for no websocket.
// Nothing has been answered then.
var ErrNoWebsocket = websocket.ErrNoUpgrade

// JoinOptions say how [Join] carries a stream.
type JoinOptions struct {
	// Ping is the time between two pings, and Idle how long the client may answer none, or
	// take nothing of what is sent. 0: 10 s and 60 s.
	Ping, Idle time.Duration
	// Datagrams carries each message of the client in one Write, and each Read in one
	// message, as UDP needs it. Otherwise a stream is one of bytes.
	Datagrams bool
	// Cuts ends the client's connection without a close frame when the other end has
	// ended, as clients of consoles and screens expect it.
	Cuts bool
	// Gone is asked when the other end has ended. What it returns is why the client is to
	// connect again, and the client gets it in a close frame. Empty, or nil: it is not.
	Gone func() string
	// Ended ends the stream when it is closed: the client is to connect again. Nil: it
	// does not.
	Ended <-chan struct{}
	// Closed is called once, when both ends are closed. Nil: nothing is.
	Closed func()
}

// Join makes a request a websocket of the subprotocol plain.kubevirt.io, and copies between
// its client and far until one of them ends. It returns when the stream is open, and the
// handler should too: the request with its buffers and the stack of its handshake is as much
// memory as the stream. far is closed in the end, also with an error; an error that is not
// [ErrNoWebsocket] is of a client that is gone.
func Join(w http.ResponseWriter, r *http.Request, far net.Conn, o JoinOptions) error {
	end := func() {
		_ = far.Close() // it may have ended
		if o.Closed != nil {
			o.Closed()
		}
	}
	how := websocket.Options{Ping: cmp.Or(o.Ping, 10*time.Second), Idle: cmp.Or(o.Idle, time.Minute), Cuts: o.Cuts, Gone: o.Gone}
	if o.Datagrams {
		how.Framing = websocket.Datagrams
	}
	near, err := websocket.Upgrade(w, r, how)
	if err != nil {
		end()
		return err
	}
	go func() {
		defer end()
		near.Join(far, o.Ended)
	}()
	return nil
}
