package websocket

import (
	"bufio"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

const (
	// chunk is how much is read or written at once, in bytes.
	chunk = 16 << 10
	// maxDatagram is the size of the largest datagram of UDP, in bytes.
	maxDatagram = 65535
	// closing is how long Close waits for the peer to confirm that it has all.
	closing = 3 * time.Second
)

// Framing says how messages and bytes belong together.
type Framing string

const (
	// Bytes is a stream of bytes: where messages begin and end does not count. It is
	// what the zero value means.
	Bytes Framing = "bytes"
	// Datagrams carries each Write in one message, and each message to one Read. What
	// does not fit into the buffer of that Read is lost, as with UDP.
	Datagrams Framing = "datagrams"
)

// side is which end a Conn is. A client masks what it sends.
type side string

const (
	client side = "client"
	server side = "server"
)

// Conn is an end of a stream. Its methods are those of net.Conn and may be called from
// any goroutine. Close sends what was written before, then a close frame, and waits some
// seconds at most for the peer to confirm.
//
// The end of the stream is io.EOF if the peer closed it with the code 1000. If it was cut,
// or closed with another code, the error wraps io.ErrUnexpectedEOF.
type Conn struct {
	// user is the end of a pipe that Read and Write use: it has their deadlines. inner
	// is its other end.
	user, inner net.Conn
	wire        io.ReadWriteCloser
	in          *bufio.Reader
	side        side
	framing     Framing
	addr        net.Addr

	writing sync.Mutex // frames are written whole
	frame   []byte     // that is written, guarded by writing

	mu     sync.Mutex
	reason error // why the stream has ended, or nil
	closed bool  // by Close

	received, sent chan struct{} // closed when the goroutine has ended
	spare          []byte        // of Read, in datagrams
	reading        sync.Mutex    // guards spare
}

func newConn(wire io.ReadWriteCloser, in *bufio.Reader, s side, f Framing, addr net.Addr) *Conn {
	c := &Conn{wire: wire, in: in, side: s, framing: f, addr: addr, received: make(chan struct{}), sent: make(chan struct{})}
	c.user, c.inner = net.Pipe()
	go c.receive()
	go c.send()
	return c
}

// Read reads what the peer sent.
func (c *Conn) Read(b []byte) (int, error) {
	var n int
	var err error
	if c.framing == Datagrams {
		n, err = c.readDatagram(b)
	} else {
		n, err = c.user.Read(b)
	}
	switch {
	case errors.Is(err, io.EOF):
		return n, c.ended()
	case errors.Is(err, io.ErrClosedPipe):
		return n, net.ErrClosed
	}
	return n, err
}

func (c *Conn) readDatagram(b []byte) (int, error) {
	if len(b) >= maxDatagram {
		return c.user.Read(b)
	}
	c.reading.Lock()
	defer c.reading.Unlock()
	if c.spare == nil {
		c.spare = make([]byte, maxDatagram)
	}
	n, err := c.user.Read(c.spare)
	return copy(b, c.spare[:n]), err
}

// Write sends to the peer. It returns once the bytes are on their way, in order.
func (c *Conn) Write(b []byte) (int, error) {
	if c.framing == Datagrams && len(b) > maxDatagram {
		return 0, errTooLarge
	}
	n, err := c.user.Write(b)
	if errors.Is(err, io.ErrClosedPipe) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.closed {
			return n, net.ErrClosed
		}
		return n, fmt.Errorf("write to a stream that has ended: %w", io.ErrClosedPipe)
	}
	return n, err
}

// Close ends the stream. An error says that the peer did not confirm it in time: what was
// written last may be lost.
func (c *Conn) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	_ = c.user.Close()
	late := time.NewTimer(closing)
	defer late.Stop()
	select {
	case <-c.sent:
		return nil
	case <-late.C:
		_ = c.wire.Close()
		<-c.sent
		return fmt.Errorf("close a stream: the peer has not confirmed it: %w", os.ErrDeadlineExceeded)
	}
}

// Cut ends the stream without a close frame. What was written last may be lost.
func (c *Conn) Cut() {
	_ = c.wire.Close()
	_ = c.Close()
}

// LocalAddr is the address of the stream: its URL.
func (c *Conn) LocalAddr() net.Addr { return c.addr }

// RemoteAddr is the address of the stream: its URL.
func (c *Conn) RemoteAddr() net.Addr { return c.addr }

// SetDeadline sets the deadlines of reads and writes. One that has passed leaves the stream
// usable after a later one is set.
func (c *Conn) SetDeadline(t time.Time) error { return c.user.SetDeadline(t) }

// SetReadDeadline sets the deadline of reads.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.user.SetReadDeadline(t) }

// SetWriteDeadline sets the deadline of writes.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.user.SetWriteDeadline(t) }

// ended is why the stream has ended.
func (c *Conn) ended() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reason
}

// end records why the stream ends, unless it has ended before, and ends the reads of the
// user.
func (c *Conn) end(err error) {
	c.mu.Lock()
	if c.reason == nil {
		c.reason = err
	}
	c.mu.Unlock()
	_ = c.inner.Close()
}

// send carries what the user writes to the wire until one of both ends.
func (c *Conn) send() {
	defer close(c.sent)
	defer func() { _ = c.wire.Close() }()
	size := chunk
	if c.framing == Datagrams {
		size = maxDatagram
	}
	b := make([]byte, size)
	for {
		n, err := c.inner.Read(b)
		if err != nil {
			break // closed by the user, or by the peer
		}
		if err := c.write(opBinary, b[:n]); err != nil {
			c.end(fmt.Errorf("write to the stream: %w: %w", err, io.ErrUnexpectedEOF))
			return
		}
	}
	if c.write(opClose, closePayload(c.ended())) == nil {
		<-c.received
	}
}

// closePayload is the payload of the close frame of a stream that ended so.
func closePayload(err error) []byte {
	code := uint16(codeNormal)
	switch {
	case errors.Is(err, errTooLarge):
		code = codeTooLarge
	case errors.Is(err, errProtocol):
		code = codeProtocol
	}
	return binary.BigEndian.AppendUint16(nil, code)
}

// write writes a frame. It masks b in place.
func (c *Conn) write(op byte, b []byte) error {
	h := header{final: true, op: op, length: uint64(len(b)), masked: c.side == client}
	if h.masked {
		if _, err := rand.Read(h.key[:]); err != nil {
			return err
		}
		mask(b, h.key, 0)
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	c.frame = append(h.appendTo(c.frame[:0]), b...)
	_, err := c.wire.Write(c.frame)
	return err
}

// receive carries what comes by the wire to the user until one of both ends. When the user
// has closed, it drops what still comes before the close frame.
func (c *Conn) receive() {
	defer close(c.received)
	var err error
	message := incoming{conn: c}
	for err == nil {
		err = message.frame()
	}
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("%w: %w", err, io.ErrUnexpectedEOF)
	}
	c.end(err)
}
