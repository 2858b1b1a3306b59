package websocket

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gorilla/websocket"

	"github.com/podvisor/podvisor/internal/carry"
	"github.com/podvisor/podvisor/vmi"
)

// Sizes, in bytes.
const (
	// chunk is how much of a stream is read or written at once.
	chunk = carry.Much
	// maxMessage is the size of the largest message of a stream of bytes. No more than a
	// chunk of it is held.
	maxMessage = 1 << 20
	// ofClient is the buffer of what is read of a client: more is read past it. It is not
	// the buffer of the request, which keeps the request in memory.
	ofClient = carry.Little
	// maxReason is the size of the longest reason in a close frame.
	maxReason = 123
	// maxDatagram is the size of the largest datagram of UDP.
	maxDatagram = 65535
)

// closing is how long the end of a stream waits for the peer to confirm that it has all.
const closing = 3 * time.Second

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

// Buffers that a stream has only while it uses them.
var (
	outgoing  = new(sync.Pool)
	chunks    = sync.Pool{New: func() any { return new(make([]byte, chunk)) }}
	datagrams = sync.Pool{New: func() any { return new(make([]byte, maxDatagram)) }}
)

// Options say how a stream behaves.
type Options struct {
	Framing Framing
	// Ping is the time between two pings, and Idle how long the peer may send nothing, not
	// even the answer of a ping, or take nothing of what is sent: then the stream is cut.
	// 0: no pings and no limit. They are for [Upgrade] and [Accept], and go together.
	Ping, Idle time.Duration
	// Cuts says that the peer gets no close frame when the other end is closed.
	Cuts bool
	// Gone is asked why the other end is closed, when it is, if the peer is to connect again:
	// then it gets that in a close frame with the code 1001. Empty: it is not. Nil: it never is.
	Gone func() string
}

// Link is a websocket that is open and carries nothing yet. It is joined once.
type Link struct {
	Options
	ws   *websocket.Conn
	addr addr
	// received is closed when nothing more comes from the peer, and reason is why.
	received chan struct{}
	reason   error
	// late is that the peer has not confirmed the end in time, which is closing.
	late    atomic.Bool
	closing time.Duration
}

func newLink(ws *websocket.Conn, a addr, o Options) *Link {
	ws.SetReadLimit(maxMessage)
	if o.Framing == Datagrams {
		ws.SetReadLimit(maxDatagram)
	}
	return &Link{Options: o, ws: ws, addr: a, received: make(chan struct{}), closing: closing}
}

// ErrNoUpgrade is wrapped by the error of [Upgrade] and [Accept] for a request that cannot
// become a websocket. Nothing has been answered then.
var ErrNoUpgrade = errors.New("the request asks for no websocket of version 13")

// Upgrade upgrades a request. The subprotocol is chosen if the client offers it; a client
// that does not is accepted too, and so is any Origin.
func Upgrade(w http.ResponseWriter, r *http.Request, o Options) (*Link, error) {
	u := websocket.Upgrader{
		HandshakeTimeout: closing,
		ReadBufferSize:   ofClient,
		WriteBufferPool:  outgoing,
		WriteBufferSize:  chunk,
		Subprotocols:     []string{vmi.StreamProtocol},
		CheckOrigin:      func(*http.Request) bool { return true },
		Error:            func(http.ResponseWriter, *http.Request, int, error) {},
	}
	ws, err := u.Upgrade(w, r, nil)
	var refused websocket.HandshakeError
	switch {
	case errors.As(err, &refused):
		return nil, fmt.Errorf("%w: %w", ErrNoUpgrade, err)
	case err != nil:
		return nil, fmt.Errorf("accept a websocket: %w", err)
	}
	return newLink(ws, addr(r.URL.String()), o), nil
}

// Asked reports whether the request asks for a websocket.
func Asked(r *http.Request) bool { return websocket.IsWebSocketUpgrade(r) }

// Join copies both ways between the peer and far until one of them ends, the peer is silent
// for too long, or ended is closed. Then it closes both. What came before the end of one is
// given to the other; for that it waits some seconds at most. The peer gets a close frame
// with the code 1000 if far ends, unless Cuts, and with 1001 if Gone says why it has, or if
// ended is closed.
func (l *Link) Join(far net.Conn, ended <-chan struct{}) {
	var both sync.WaitGroup
	sent := make(chan struct{})
	both.Go(func() { defer close(l.received); l.reason = l.receive(far) })
	both.Go(func() { defer close(sent); l.send(far) })
	if l.Ping > 0 {
		defer l.ping(far).Stop()
	}
	code, why := 0, ""
	select {
	case <-l.received:
		_ = l.ws.Close()
		carry.Finish(far)
	case <-sent:
		if l.Gone != nil {
			why = l.Gone()
		}
		switch {
		case why != "":
			code, why = websocket.CloseGoingAway, why[:min(len(why), maxReason)]
		case !l.Cuts:
			code = websocket.CloseNormalClosure
		}
	case <-ended:
		code, why = websocket.CloseGoingAway, "the server ends; connect again"
	}
	_ = far.Close()
	if code != 0 && l.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, why), time.Now().Add(l.closing)) == nil {
		limit := l.limit()
		<-l.received // until the close frame of the peer: it has all then
		limit.Stop()
	}
	_ = l.ws.Close()
	both.Wait()
}

// limit ends the websocket if it is not stopped in time.
func (l *Link) limit() *time.Timer {
	return time.AfterFunc(l.closing, func() {
		l.late.Store(true)
		_ = l.ws.Close()
	})
}

// ping sends pings until the timer is stopped. One that cannot be sent ends the stream, also
// when nothing is received because far takes nothing.
func (l *Link) ping(far net.Conn) *time.Timer {
	var next *time.Timer
	next = time.AfterFunc(time.Hour, func() {
		if l.ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(l.Idle)) != nil {
			_ = far.Close()
			return
		}
		next.Reset(l.Ping)
	})
	next.Reset(l.Ping)
	return next
}

// alive gives the peer time to send something.
func (l *Link) alive() {
	if l.Idle > 0 {
		_ = l.ws.SetReadDeadline(time.Now().Add(l.Idle))
	}
}

// receive gives to far what the peer sends, and drops it when far is closed. It returns
// io.EOF when the peer has closed the stream, and otherwise why it was cut.
func (l *Link) receive(far net.Conn) error {
	l.ws.SetPongHandler(func(string) error { l.alive(); return nil })
	for {
		l.alive()
		kind, message, err := l.ws.NextReader()
		switch {
		case err != nil || kind != websocket.BinaryMessage:
		case l.Framing == Datagrams:
			err = passDatagram(far, message)
		default:
			err = l.passBytes(far, message)
		}
		switch {
		case websocket.IsCloseError(err, websocket.CloseNormalClosure, websocket.CloseNoStatusReceived):
			return io.EOF
		case websocket.IsCloseError(err, websocket.CloseAbnormalClosure):
			return fmt.Errorf("the stream has ended: %w", io.ErrUnexpectedEOF) // a CloseError wraps nothing
		case err != nil:
			return fmt.Errorf("the stream has ended: %w: %w", err, io.ErrUnexpectedEOF)
		}
	}
}

// passBytes gives a message to far as it comes: the rest of a large one may come later.
func (l *Link) passBytes(far net.Conn, message io.Reader) error {
	b := chunks.Get().(*[]byte)
	defer chunks.Put(b)
	for {
		n, err := message.Read(*b)
		if n > 0 {
			if _, err := far.Write((*b)[:n]); err != nil {
				_ = far.Close()
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		l.alive()
	}
}

// passDatagram gives a message to far at once. It may be lost there.
func passDatagram(far net.Conn, message io.Reader) error {
	b := datagrams.Get().(*[]byte)
	defer datagrams.Put(b)
	n, err := io.ReadFull(message, *b)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	_, _ = far.Write((*b)[:n])
	return nil
}

// send sends to the peer what comes from far, until far ends or the peer does not take it.
func (l *Link) send(far net.Conn) {
	if l.Framing != Datagrams {
		_ = carry.Copy(sender{l}, far) // how a stream ends is what is received
		return
	}
	b := make([]byte, maxDatagram)
	for {
		n, err := far.Read(b)
		if err == nil {
			_, err = sender{l}.Write(b[:n])
		}
		// That nothing takes the datagrams at a port may change.
		if err != nil && !errors.Is(err, syscall.ECONNREFUSED) {
			return
		}
	}
}

// sender sends each write in a message.
type sender struct{ *Link }

// Write implements io.Writer. How much of a message that failed was sent is not known: none
// of it counts.
func (s sender) Write(b []byte) (int, error) {
	if s.Idle > 0 {
		_ = s.ws.SetWriteDeadline(time.Now().Add(s.Idle))
	}
	if err := s.ws.WriteMessage(websocket.BinaryMessage, b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// addr is the address of a stream: its URL.
type addr string

var _ net.Addr = addr("")

// Network is websocket.
func (addr) Network() string { return "websocket" }

// String is the URL.
func (a addr) String() string { return string(a) }
