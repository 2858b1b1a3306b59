package websocket

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/gorilla/websocket"

	"github.com/podvisor/podvisor/vmi"
)

// maxRefusal is how much of the body of a refusal is read, in bytes.
const maxRefusal = 64 << 10

// Refused is the error of [Dial] when the answer is no upgrade.
type Refused struct {
	// Status is the status of the answer, and Header its header.
	Status int
	Header http.Header
	// Body is the body of the answer, at most 64 KiB of it.
	Body []byte
}

// Error implements error.
func (r *Refused) Error() string {
	return fmt.Sprintf("the answer is %d %s and not a websocket", r.Status, http.StatusText(r.Status))
}

// Dial opens the stream of the URL, whose scheme is http or https. The request is sent by
// t, which must give the connection as the body of an answer with the status 101, as
// http.Transport does. An answer of another status is a *Refused. The context counts until
// Dial returns.
func Dial(ctx context.Context, t http.RoundTripper, u *url.URL, f Framing) (*Conn, error) {
	x := &exchange{ctx: ctx, transport: t, url: u}
	d := websocket.Dialer{
		NetDialContext:  func(context.Context, string, string) (net.Conn, error) { return x, nil },
		WriteBufferPool: outgoing,
		ReadBufferSize:  chunk,
		WriteBufferSize: chunk,
		Subprotocols:    []string{vmi.StreamProtocol},
	}
	ws, _, err := d.DialContext(ctx, (&url.URL{Scheme: "ws", Host: u.Host}).String(), nil) //nolint:bodyclose // a websocket has none
	if err != nil {
		return nil, err
	}
	if p := ws.Subprotocol(); p != "" && p != vmi.StreamProtocol {
		_ = ws.Close()
		return nil, fmt.Errorf("the answer chooses the subprotocol %q, which was not offered", p)
	}
	return newConn(newLink(ws, addr(u.Redacted()), Options{Framing: f})), nil
}

// exchange is the connection that a websocket.Dialer is given. The request that the Dialer
// writes, which is its first Write, is sent by the transport, and the header of the answer
// is what is read first. All that follows is of the body of the answer, which has no
// deadlines.
type exchange struct {
	net.Conn                  // nil
	ctx       context.Context //nolint:containedctx // that of Dial
	transport http.RoundTripper
	url       *url.URL

	head bytes.Buffer
	wire io.ReadWriteCloser
}

func (x *exchange) Write(b []byte) (int, error) {
	if x.wire != nil {
		return x.wire.Write(b)
	}
	written, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(b)))
	if err != nil {
		return 0, err
	}
	r, err := http.NewRequestWithContext(x.ctx, http.MethodGet, x.url.String(), nil)
	if err != nil {
		return 0, err
	}
	r.Header = written.Header
	r.Header.Del("User-Agent") // net/http has added its own, and no transport replaces one
	answer, err := x.transport.RoundTrip(r)
	if err != nil {
		return 0, err
	}
	wire, ok := answer.Body.(io.ReadWriteCloser)
	switch {
	case answer.StatusCode != http.StatusSwitchingProtocols:
		body, err := io.ReadAll(io.LimitReader(answer.Body, maxRefusal))
		_ = answer.Body.Close()
		return 0, errors.Join(&Refused{Status: answer.StatusCode, Header: answer.Header, Body: body}, err)
	case !ok:
		_ = answer.Body.Close()
		return 0, fmt.Errorf("the transport hides the connection behind a %T: a stream cannot use it", answer.Body)
	case answer.Header.Get("Sec-WebSocket-Extensions") != "":
		_ = wire.Close()
		return 0, fmt.Errorf("the answer chooses the extension %q, which was not offered", answer.Header.Get("Sec-WebSocket-Extensions"))
	}
	x.wire = wire
	x.head.WriteString("HTTP/1.1 101 Switching Protocols\r\n")
	_ = answer.Header.Write(&x.head)
	x.head.WriteString("\r\n")
	return len(b), nil
}

func (x *exchange) Read(b []byte) (int, error) {
	if x.head.Len() > 0 {
		return x.head.Read(b)
	}
	return x.wire.Read(b)
}

// Close closes the connection, if there is one.
func (x *exchange) Close() error {
	if x.wire == nil {
		return nil
	}
	return x.wire.Close()
}

// SetDeadline does nothing.
func (*exchange) SetDeadline(time.Time) error { return nil }

// SetReadDeadline does nothing.
func (*exchange) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline does nothing.
func (*exchange) SetWriteDeadline(time.Time) error { return nil }
