package control

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"strings"
	"time"

	"golang.org/x/time/rate"
)

// The paths of the protocol. A change that an older peer would misread gets
// another version.
const (
	statePath     = "/v1/state"
	watchPath     = "/v1/watch"
	desiredPath   = "/v1/desired"
	namespacePath = "/v1/network-namespace"
)

// maxState is the longest state that a client reads: the launcher belongs to a
// tenant and may send anything.
const maxState = 1 << 20

// statesPerSecond is how many bytes of states a client reads in a second, beyond
// the first maxState ones. A machine's whole life takes fewer than those; a
// launcher that never stops waits, instead of having a processor of the node.
const statesPerSecond = 256 << 10

// Client speaks to one launcher. Its methods may be called from any goroutine.
// It keeps no connection open between calls, so it needs no closing.
type Client struct {
	dial func(context.Context) (net.Conn, error)
	http *http.Client
}

// NewClient returns a client of the launcher that dial connects to. Namespace
// needs dial to return a [*net.UnixConn].
//
// The launcher is in the hands of a tenant: dial must not follow a path that
// the pod can change.
func NewClient(dial func(context.Context) (net.Conn, error)) *Client {
	return &Client{dial: dial, http: &http.Client{
		Transport: &http.Transport{
			DialContext:            func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
			DisableKeepAlives:      true,
			DisableCompression:     true,
			MaxResponseHeaderBytes: 16 << 10,
			ResponseHeaderTimeout:  10 * time.Second,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// State reads the launcher's present state.
func (c *Client) State(ctx context.Context) (State, error) {
	resp, err := c.do(ctx, http.MethodGet, statePath, nil)
	if err != nil {
		return State{}, err
	}
	defer resp.Body.Close()
	var s State
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxState)).Decode(&s); err != nil {
		return State{}, fmt.Errorf("read the launcher's state: %w", err)
	}
	return s, nil
}

// Watch reads the launcher's state as it changes, the present one first. The
// sequence ends after the Ended state; it ends with an error, beside a zero
// State, if the stream breaks before. A launcher that says too much is heard
// slowly.
func (c *Client) Watch(ctx context.Context) iter.Seq2[State, error] {
	return func(yield func(State, error) bool) {
		resp, err := c.do(ctx, http.MethodGet, watchPath, nil)
		if err != nil {
			yield(State{}, err)
			return
		}
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, maxState)
		pace := rate.NewLimiter(statesPerSecond, maxState)
		for lines.Scan() {
			var s State
			if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
				// The error quotes what cannot be read.
				yield(State{}, errors.New("read the launcher's state: "+words(err.Error())))
				return
			}
			if !yield(s, nil) || s.Phase == Ended {
				return
			}
			if pace.WaitN(ctx, len(lines.Bytes())+1) != nil {
				break // ctx ends before
			}
		}
		err = cmp.Or(lines.Err(), ctx.Err(), io.ErrUnexpectedEOF)
		yield(State{}, fmt.Errorf("watch the launcher's state: %w", err))
	}
}

// Put tells the launcher what is wanted. A refusal is an [*Error].
func (c *Client) Put(ctx context.Context, d Desired) error {
	body, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("encode the desired state: %w", err)
	}
	resp, err := c.do(ctx, http.MethodPut, desiredPath, body)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// do sends a request and returns the response of a success, whose body the
// caller closes.
func (c *Client) do(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://launcher"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask the launcher: %w", err)
	}
	if resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, refusal(resp)
}

// refusal is the error that a response stands for.
func refusal(resp *http.Response) *Error {
	var p Problem
	_ = json.NewDecoder(io.LimitReader(resp.Body, 64<<10)).Decode(&p) // without a problem the status says enough
	return &Error{Status: resp.StatusCode, Reason: words(p.Reason), Message: words(p.Message)}
}

// maxWords is how many bytes of a launcher's own words get into an error.
const maxWords = 4 << 10

func words(s string) string { return strings.ToValidUTF8(s[:min(len(s), maxWords)], "") }
