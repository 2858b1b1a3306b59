package transport

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/podvisor/podvisor/internal/carry"
	"github.com/podvisor/podvisor/launcher/protocol"
)

// Asked is the refusal of a request that does not ask for the upgrade to the token.
func Asked(r *http.Request, token string) error {
	if r.Header.Get("Upgrade") != token {
		return Refusal(protocol.ReasonMalformed, "ask for the upgrade %s", token)
	}
	return nil
}

// Granted is the head of the response that grants the upgrade to the token.
func Granted(token string) []byte {
	return fmt.Appendf(nil, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", token)
}

// upgrade grants the request the upgrade to the token, and returns its connection, without
// deadlines. The handler of the request should return then: until it does, the request and
// its buffers are in memory. The connection is closed if there is an error.
func upgrade(w http.ResponseWriter, token string) (net.Conn, error) {
	c, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, err
	}
	out, err := unread(c, buffered.Reader)
	if err == nil {
		_, err = c.Write(Granted(token))
	}
	if err == nil {
		err = c.SetDeadline(time.Time{})
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return out, nil
}

// unread returns the connection with what r has read of it and not returned. It keeps
// nothing of r.
func unread(c net.Conn, r *bufio.Reader) (net.Conn, error) {
	early, err := r.Peek(r.Buffered())
	if len(early) == 0 {
		return c, err
	}
	return &prefixed{Conn: c, early: append([]byte(nil), early...)}, err
}

// prefixed is a connection of which some bytes were read already.
type prefixed struct {
	net.Conn
	early []byte
}

// Read reads what was read already before all else.
func (c *prefixed) Read(b []byte) (int, error) {
	if len(c.early) == 0 {
		return c.Conn.Read(b)
	}
	n := copy(b, c.early)
	if c.early = c.early[n:]; len(c.early) == 0 {
		c.early = nil
	}
	return n, nil
}

// CloseWrite ends what is written, if the connection can.
func (c *prefixed) CloseWrite() error { return carry.CloseWrite(c.Conn) }

// Granted reads the head of the response to a request for an upgrade. What is no grant is an
// error: a refusal is that of [Config.Refused].
func (c *Client) Granted(r *bufio.Reader) error {
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		return Limited(err)
	}
	defer resp.Body.Close() // a response that switches protocols has none
	if resp.StatusCode != http.StatusSwitchingProtocols {
		return c.refusal(resp)
	}
	return nil
}

// AskUpgrade writes the request for the upgrade to the token on the path.
func (c *Client) AskUpgrade(ctx context.Context, w io.Writer, path, token string) error {
	r, err := c.request(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", token)
	return r.Write(w)
}
