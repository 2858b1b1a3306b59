package websocket

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // RFC 6455 has it in its handshake, and not for security
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
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

// Dial opens the stream of the URL, whose scheme is http or https, with the subprotocol.
// The request is sent by t, which must give the connection as the body of an answer with
// the status 101, as http.Transport does. An answer of another status is a *Refused. The
// context counts until Dial returns.
func Dial(ctx context.Context, t http.RoundTripper, u *url.URL, protocol string, f Framing) (*Conn, error) {
	var raw [16]byte
	if _, err := rand.Read(raw[:]); err != nil {
		return nil, err
	}
	key := base64.StdEncoding.EncodeToString(raw[:])
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "websocket")
	r.Header.Set("Sec-WebSocket-Version", "13")
	r.Header.Set("Sec-WebSocket-Key", key)
	r.Header.Set("Sec-WebSocket-Protocol", protocol)
	answer, err := t.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusSwitchingProtocols {
		defer func() { _ = answer.Body.Close() }()
		body, err := io.ReadAll(io.LimitReader(answer.Body, maxRefusal))
		return nil, errors.Join(&Refused{Status: answer.StatusCode, Header: answer.Header, Body: body}, err)
	}
	wire, err := agreed(answer, key, protocol)
	if err != nil {
		_ = answer.Body.Close()
		return nil, err
	}
	return newConn(wire, bufio.NewReader(wire), client, f, addr(u.Redacted())), nil
}

// agreed is the connection of the answer, if it is what was asked for.
func agreed(answer *http.Response, key, protocol string) (io.ReadWriteCloser, error) {
	wire, ok := answer.Body.(io.ReadWriteCloser)
	chosen := answer.Header.Get("Sec-WebSocket-Protocol")
	switch {
	case !ok:
		return nil, fmt.Errorf("the transport hides the connection behind a %T: a stream cannot use it", answer.Body)
	case !strings.EqualFold(answer.Header.Get("Upgrade"), "websocket"), answer.Header.Get("Sec-WebSocket-Accept") != accepted(key):
		return nil, fmt.Errorf("%w: the answer does not accept the key of the request", errProtocol)
	case chosen != "" && chosen != protocol, answer.Header.Get("Sec-WebSocket-Extensions") != "":
		return nil, fmt.Errorf("%w: the answer chooses the subprotocol %q, or an extension, that was not offered", errProtocol, chosen)
	}
	return wire, nil
}

// accepted is the answer to the key of a handshake.
func accepted(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")) //nolint:gosec // as above
	return base64.StdEncoding.EncodeToString(sum[:])
}

// ErrNoUpgrade is the error of [Accept] for a request that asks for no websocket. Nothing
// has been answered then.
var ErrNoUpgrade = errors.New("the request asks for no websocket of version 13")

// Accept upgrades a request to a stream. The subprotocol is chosen if the client offers it;
// a client that does not is accepted too, and so is any Origin.
func Accept(w http.ResponseWriter, r *http.Request, protocol string, f Framing) (*Conn, error) {
	key := r.Header.Get("Sec-WebSocket-Key")
	raw, err := base64.StdEncoding.DecodeString(key)
	if err != nil || len(raw) != 16 || r.Method != http.MethodGet || !Asked(r) || r.Header.Get("Sec-WebSocket-Version") != "13" {
		return nil, ErrNoUpgrade
	}
	wire, b, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, fmt.Errorf("take over the connection of a request: %w", err)
	}
	answer := "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " + accepted(key) + "\r\n"
	if slices.Contains(tokens(r.Header, "Sec-WebSocket-Protocol"), protocol) {
		answer += "Sec-WebSocket-Protocol: " + protocol + "\r\n"
	}
	err = wire.SetDeadline(time.Time{})
	if err == nil {
		_, err = io.WriteString(wire, answer+"\r\n")
	}
	if err != nil {
		_ = wire.Close()
		return nil, fmt.Errorf("accept a websocket: %w", err)
	}
	return newConn(wire, b.Reader, server, f, addr(r.URL.String())), nil
}

// Asked reports whether the request asks for a websocket.
func Asked(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket") &&
		slices.ContainsFunc(tokens(r.Header, "Connection"), func(s string) bool { return strings.EqualFold(s, "upgrade") })
}

// tokens are the elements of a header that is a list.
func tokens(h http.Header, name string) []string {
	var out []string
	for _, line := range h.Values(name) {
		for t := range strings.SplitSeq(line, ",") {
			out = append(out, strings.TrimSpace(t))
		}
	}
	return out
}

// addr is the address of a stream: its URL.
type addr string

var _ net.Addr = addr("")

// Network is websocket.
func (addr) Network() string { return "websocket" }

// String is the URL.
func (a addr) String() string { return string(a) }
