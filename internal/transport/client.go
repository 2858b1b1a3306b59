package transport

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

const (
	// MaxHead is the longest head of a response that opens a stream, and how much of the body
	// of a refusal is read, in bytes.
	MaxHead = 64 << 10
	// maxOtherHead is the longest head of another response, in bytes.
	maxOtherHead = 16 << 10
	// MaxValues is how many values an answer has at most. A few bytes can stand for a value
	// that takes many in memory.
	MaxValues = 8 << 10
)

// Config is what a [Client] needs.
type Config struct {
	// Dial connects to the peer. Required.
	Dial func(context.Context) (net.Conn, error)
	// Host is the name of the peer in requests. Required.
	Host string
	// Token is shown with each request. Empty: none is.
	Token string
	// Timeout is how long the peer may take to begin an answer that is not that of a call. A
	// call is answered when it is done. 0: as long as the context lasts.
	Timeout time.Duration
	// MaxAnswer is the longest answer to a call, in bytes. Required.
	MaxAnswer int
	// Refused is the error of a refusal. The finding is empty if the answer has none. Required.
	Refused func(status int, f vmi.Finding) error
}

// Client is the side of a connection that asks. Its methods may be called from any
// goroutine. It keeps no connection open between requests, so it needs no closing.
type Client struct {
	config Config
	others http.RoundTripper
	calls  http.RoundTripper
}

// NewClient makes a Client. It asks nothing.
func NewClient(c Config) *Client {
	transport := func(timeout time.Duration) http.RoundTripper {
		return &http.Transport{
			DialContext:            func(ctx context.Context, _, _ string) (net.Conn, error) { return c.Dial(ctx) },
			DisableKeepAlives:      true,
			DisableCompression:     true,
			MaxResponseHeaderBytes: maxOtherHead,
			ResponseHeaderTimeout:  timeout,
		}
	}
	return &Client{config: c, others: transport(c.Timeout), calls: transport(0)}
}

// request is a request to the peer.
func (c *Client) request(ctx context.Context, method, path string, body []byte) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://"+c.config.Host+path, bytes.NewReader(body))
	if err == nil && c.config.Token != "" {
		r.Header.Set("Authorization", "Bearer "+c.config.Token)
	}
	return r, err
}

// Do sends a request and returns the response of a success, whose body the caller closes.
// A response that switches protocols is none: from then on ctx would not end what is read
// of its connection.
func (c *Client) Do(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	return c.do(ctx, c.others, method, path, body)
}

func (c *Client) do(ctx context.Context, by http.RoundTripper, method, path string, body []byte) (*http.Response, error) {
	r, err := c.request(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	resp, err := by.RoundTrip(r)
	if err != nil {
		return nil, Limited(err)
	}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, c.refusal(resp)
}

// Call makes the call of the path and returns when it is done. Options are sent as JSON, and the
// answer is decoded into what answer points to; nil: there are none. A peer that answers nothing
// leaves the answer as it is. How long a call takes is bounded by ctx alone.
func (c *Client) Call(ctx context.Context, p protocol.Path, options, answer any) error {
	var body []byte
	if options != nil {
		var err error
		if body, err = json.Marshal(options); err != nil {
			return Refusal(protocol.ReasonMalformed, "encode the options of call %s: %v", p.Call, err)
		}
	}
	resp, err := c.do(ctx, c.calls, http.MethodPost, p.String(), body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if answer == nil || resp.StatusCode == http.StatusNoContent {
		return nil
	}
	if err := Read(resp.Body, c.config.MaxAnswer, answer); err != nil {
		return fmt.Errorf("read the answer to call %s: %w", p.Call, err)
	}
	return nil
}

// Stream opens the stream of the path. ctx bounds the opening and not the stream, which the
// caller closes. What arrives may be a tenant's: raw bytes, at any rate, until either side ends.
func (c *Client) Stream(ctx context.Context, p protocol.Path) (_ net.Conn, err error) {
	conn, err := c.config.Dial(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, context.Cause(ctx), conn.Close())
		}
	}()
	stop := c.Bound(ctx, conn)
	defer stop()
	if err := c.AskUpgrade(ctx, conn, p.String(), protocol.StreamUpgrade); err != nil {
		return nil, err
	}
	r := bufio.NewReader(&io.LimitedReader{R: conn, N: MaxHead})
	if err := c.Granted(r); err != nil {
		return nil, err
	}
	if !stop() {
		return nil, context.Cause(ctx)
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return nil, err
	}
	return unread(conn, r)
}

// Bound ends what conn waits for when ctx ends, or when the peer is due to have answered.
// The function that it returns stops that, and says whether it was in time.
func (c *Client) Bound(ctx context.Context, conn net.Conn) (stop func() bool) {
	// Deadlines cannot be set on closed connections only, and then nothing waits.
	if c.config.Timeout > 0 {
		_ = conn.SetDeadline(time.Now().Add(c.config.Timeout))
	}
	return context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
}

// errTooLarge is the error of an answer that is beyond the limits.
var errTooLarge = errors.New("it is too large")

// Read decodes what a peer answers, which has at most so many bytes.
func Read(r io.Reader, most int, into any) error {
	b, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
	if err != nil {
		return Limited(err)
	}
	return Decode(b, most, into)
}

// Decode is [Read] of what was read already. What is too large is refused before it is
// decoded.
func Decode(b []byte, most int, into any) error {
	if len(b) > most || bytes.Count(b, []byte{','})+bytes.Count(b, []byte{'['}) > MaxValues {
		return errTooLarge
	}
	if err := json.Unmarshal(b, into); err != nil {
		return Limited(err)
	}
	return nil
}
