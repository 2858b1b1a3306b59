package websocket

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
)

// Conn is an end of a stream. Its methods are those of net.Conn and may be called from
// any goroutine. A deadline that has passed leaves the stream usable after a later one is
// set.
//
// The end of the stream is io.EOF if the peer closed it with the code 1000. If it was cut,
// or closed with another code, the error wraps io.ErrUnexpectedEOF.
type Conn struct {
	// Conn is the end of a pipe, whose other end the link is joined with: it has the
	// deadlines, which end a websocket for good.
	net.Conn
	link   *Link
	closed atomic.Bool   // by Close
	done   chan struct{} // closed when the link has ended

	reading sync.Mutex
	spare   []byte // of Read, in datagrams, guarded by reading
}

var _ net.Conn = (*Conn)(nil)

// Accept upgrades a request to a stream, see [Upgrade].
func Accept(w http.ResponseWriter, r *http.Request, o Options) (*Conn, error) {
	l, err := Upgrade(w, r, o)
	if err != nil {
		return nil, err
	}
	return newConn(l), nil
}

func newConn(l *Link) *Conn {
	user, inner := net.Pipe()
	c := &Conn{Conn: user, link: l, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		l.Join(inner, nil)
	}()
	return c
}

// Read reads what the peer sent.
func (c *Conn) Read(b []byte) (int, error) {
	var n int
	var err error
	if c.link.Framing == Datagrams {
		n, err = c.readDatagram(b)
	} else {
		n, err = c.Conn.Read(b)
	}
	switch {
	case errors.Is(err, io.EOF):
		<-c.link.received
		return n, c.link.reason
	case errors.Is(err, io.ErrClosedPipe):
		return n, net.ErrClosed
	}
	return n, err
}

func (c *Conn) readDatagram(b []byte) (int, error) {
	if len(b) >= maxDatagram {
		return c.Conn.Read(b)
	}
	c.reading.Lock()
	defer c.reading.Unlock()
	if c.spare == nil {
		c.spare = make([]byte, maxDatagram)
	}
	n, err := c.Conn.Read(c.spare)
	return copy(b, c.spare[:n]), err
}

// Write sends to the peer. It returns once the bytes are on their way, in order.
func (c *Conn) Write(b []byte) (int, error) {
	if c.link.Framing == Datagrams && len(b) > maxDatagram {
		return 0, fmt.Errorf("write a datagram of %d bytes: one has at most %d", len(b), maxDatagram)
	}
	n, err := c.Conn.Write(b)
	switch {
	case !errors.Is(err, io.ErrClosedPipe):
		return n, err
	case c.closed.Load():
		return n, net.ErrClosed
	}
	return n, fmt.Errorf("write to a stream that has ended: %w", err)
}

// Close ends the stream. It sends what was written before, then a close frame, and waits
// some seconds at most for the peer to confirm. An error says that the peer did not: what
// was written last may be lost.
func (c *Conn) Close() error {
	c.closed.Store(true)
	_ = c.Conn.Close()
	limit := c.link.limit()
	<-c.done
	limit.Stop()
	if c.link.late.Load() {
		return fmt.Errorf("close a stream: the peer has not confirmed it: %w", os.ErrDeadlineExceeded)
	}
	return nil
}

// Cut ends the stream without a close frame. What was written last may be lost.
func (c *Conn) Cut() {
	_ = c.link.ws.Close()
	_ = c.Close()
}

// LocalAddr is the address of the stream: its URL.
func (c *Conn) LocalAddr() net.Addr { return c.link.addr }

// RemoteAddr is the address of the stream: its URL.
func (c *Conn) RemoteAddr() net.Addr { return c.link.addr }
