package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/transport"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// answering returns a client of a peer that answers every request with the same
// bytes and closes.
func answering(t testing.TB, answer []byte) *Client {
	t.Helper()
	return peer(t, answer, func(conn net.Conn) { _ = conn.Close() })
}

// holding returns a client of a peer that answers every request with the same bytes, and
// holds the connection open until the client closes it. It calls answered after each
// answer.
func holding(t testing.TB, answer []byte, answered func()) *Client {
	t.Helper()
	return peer(t, answer, func(conn net.Conn) {
		answered()
		_, _ = io.Copy(io.Discard, conn)
		_ = conn.Close()
	})
}

// peer returns a client of a peer that answers every request with the same bytes, after
// which each connection is given to then.
func peer(t testing.TB, answer []byte, then func(net.Conn)) *Client {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = conn.Read(make([]byte, 4096))
				_, _ = conn.Write(answer)
				then(conn)
			}()
		}
	}()
	return NewClient(dialTo(path))
}

// requests are all kinds of requests of a client. Each returns when nothing of it is left.
var requests = map[string]func(context.Context, *Client) error{
	"state": func(ctx context.Context, c *Client) error { _, err := c.State(ctx); return err },
	"watch": func(ctx context.Context, c *Client) (last error) {
		for _, err := range c.Watch(ctx) {
			last = err
		}
		return last
	},
	"put": func(ctx context.Context, c *Client) error { return c.Put(ctx, protocol.Desired{Instance: own()}) },
	"put to a target": func(ctx context.Context, c *Client) error {
		return c.Put(ctx, protocol.Desired{Instance: own(), Role: vmi.RoleTarget})
	},
	"call": func(ctx context.Context, c *Client) error { return c.Call(ctx, protocol.CallPause, nil, nil) },
	"question": func(ctx context.Context, c *Client) error {
		var answer json.RawMessage
		return c.Call(ctx, protocol.CallPause, map[string]int{}, &answer)
	},
	"stats": func(ctx context.Context, c *Client) error { _, err := c.Stats(ctx); return err },
	"namespace": func(ctx context.Context, c *Client) error {
		n, err := c.Namespace(ctx)
		if err == nil {
			err = n.Close()
		}
		return err
	},
	"stream": func(ctx context.Context, c *Client) error {
		conn, err := c.Stream(ctx, protocol.StreamConsole)
		if err == nil {
			err = conn.Close()
		}
		return err
	},
}

// handling returns a client of a peer with a handler of HTTP requests.
func handling(t *testing.T, h http.Handler) *Client {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	server := &http.Server{Handler: h}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	return NewClient(dialTo(path))
}

func TestAWatchThatBreaksReturnsAnError(t *testing.T) {
	_, c := serve(t, ServerConfig{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	for _, err := range c.Watch(ctx) {
		cancel()
		last = err
	}
	require.ErrorIs(t, last, context.Canceled)

	gone := NewClient(dialTo(filepath.Join(t.TempDir(), "nothing")))
	last = nil
	for _, err := range gone.Watch(t.Context()) {
		last = err
	}
	require.ErrorIs(t, last, syscall.ENOENT)
	_, err := answering(t, []byte("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{\"phase\":")).State(t.Context())
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

func TestAClientReadsAPeerThatDoesNotStopAtALimitedRate(t *testing.T) {
	c := handling(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for line := []byte(strings.Repeat(`{"phase":"Running"}`+"\n", 1000)); r.Context().Err() == nil; {
			_, _ = w.Write(line)
		}
	}))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	read, began := 0, time.Now()
	for _, err := range c.Watch(ctx) {
		if err == nil {
			read += len(`{"phase":"Running"}` + "\n")
		}
	}
	require.LessOrEqual(t, read, maxState+int(2*time.Since(began).Seconds()*statesPerSecond))
}

func TestAnErrorHoldsLittleOfWhatAPeerSends(t *testing.T) {
	c := handling(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			w.WriteHeader(http.StatusServiceUnavailable)
			_ = json.NewEncoder(w).Encode(vmi.Finding{Message: strings.Repeat("ä", 30<<10)})
			return
		}
		_, _ = w.Write([]byte(`{"disks":[{"sizeBytes":` + strings.Repeat("1", maxState/2) + "}]}\n"))
	}))
	err := c.Put(t.Context(), protocol.Desired{Instance: own()})
	require.ErrorContains(t, err, "ää")
	require.LessOrEqual(t, len(err.Error()), transport.MaxText)
	require.True(t, utf8.ValidString(err.Error()))
	_, err = c.State(t.Context())
	for _, watched := range c.Watch(t.Context()) {
		for _, err := range []error{err, watched} {
			require.ErrorContains(t, err, "read the launcher's state: json: cannot unmarshal number 111")
			require.LessOrEqual(t, len(err.Error()), transport.MaxText+100)
		}
	}
}

func TestAPeerWithAnotherProtocolIsAnError(t *testing.T) {
	for name, answer := range map[string]string{
		"silence":           "",
		"noise":             strings.Repeat("noise\r\n", 20000),
		"no descriptor":     string(transport.Granted(olderNamespaceToken)),
		"a refusal":         "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 25\r\n\r\n{\"reason\":\"Unavailable\"}\r\n",
		"a state that long": "HTTP/1.1 200 OK\r\n\r\n" + strings.Repeat("x", 2*maxState),
		"an endless head":   "HTTP/1.1 101 Switching Protocols\r\n" + strings.Repeat("X: y\r\n", transport.MaxHead),
	} {
		t.Run(name, func(t *testing.T) {
			c := answering(t, []byte(answer))
			requireErrors(t, c, name == "no descriptor")
		})
	}
}

// requireErrors makes every kind of request and requires that each fails, but for
// the opening of a stream where that is granted.
func requireErrors(t *testing.T, c *Client, opens bool) {
	t.Helper()
	_, err := c.Namespace(t.Context())
	require.Error(t, err)
	_, err = c.State(t.Context())
	require.Error(t, err)
	for _, err = range c.Watch(t.Context()) {
		require.Error(t, err)
	}
	conn, err := c.Stream(t.Context(), protocol.StreamConsole)
	require.Equal(t, opens, err == nil, "%v", err)
	if err == nil {
		require.NoError(t, conn.Close())
	}
}

func TestStatsAreThoseOfTheDomain(t *testing.T) {
	want := protocol.Stats{Parts: []protocol.Part{{Group: protocol.VCPU, Number: 1, Values: map[protocol.Stat]float64{protocol.VCPUTime: 1.5e9}}}}
	var fails error
	_, c := serve(t, ServerConfig{Stats: func(context.Context) (protocol.Stats, error) { return want, fails }})
	got, err := c.Stats(t.Context())
	require.NoError(t, err)
	require.Equal(t, want, got)

	fails = errors.New("there is no domain")
	_, err = c.Stats(t.Context())
	refusal := (*Error)(nil)
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, protocol.ReasonUnavailable, refusal.Reason)

	_, c = serve(t, ServerConfig{})
	_, err = c.Stats(t.Context())
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, protocol.ReasonUnknown, refusal.Reason)

	c = olderServer(t, nil)
	_, err = c.Stats(t.Context())
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, protocol.ReasonUnknown, refusal.Reason, "the release before counts nothing")
}

func TestAttackStatsOfALauncherAreReadWithinLimits(t *testing.T) {
	for name, body := range map[string]string{
		"bytes":   `{"parts":[{"group":"` + strings.Repeat("x", maxStats) + `"}]}`,
		"values":  `{"parts":[` + strings.Repeat(`{},`, transport.MaxValues) + `{}]}`,
		"numbers": `{"parts":[{"group":"vcpu","values":{"vcpu.time":1e999}}]}`,
		"no JSON": strings.Repeat("\x1b", 100),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := answering(t, fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)).Stats(t.Context())
			require.ErrorContains(t, err, "read the launcher's statistics")
			require.LessOrEqual(t, len(err.Error()), 2*transport.MaxText)
			require.NotContains(t, err.Error(), "\x1b")
		})
	}
}

// FuzzClient lets a launcher answer anything, and then close the connection or hold it
// open.
func FuzzClient(f *testing.F) {
	for _, answer := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 19\r\n\r\n{\"phase\":\"Running\"}",
		"HTTP/1.1 200 OK\r\n\r\n{\"phase\":\"Running\"}\n{\"phase\":\"Ended\",\"end\":{}}\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"pha\r\n0\r\n\r\n",
		"HTTP/1.1 409 Conflict\r\nContent-Length: 18\r\n\r\n{\"reason\":\"Stale\"}",
		string(transport.Granted(protocol.StreamUpgrade)) + "login: ",
		"HTTP/1.1 101 Switching Protocols\r\n\r\n",
		"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 101 x\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n{",
		"HTTP/1.1 404 Not Found\r\n\r\n404 page not found",
	} {
		f.Add([]byte(answer), true)
		f.Add([]byte(answer), false)
	}
	f.Fuzz(func(t *testing.T, answer []byte, held bool) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c := answering(t, answer)
		if held {
			var answers atomic.Int64
			c = holding(t, answer, func() {
				if answers.Add(1) == int64(len(requests)) {
					time.AfterFunc(time.Millisecond, cancel) // what was written is most often read before
				}
			})
		}
		type outcome struct {
			name string
			err  error
		}
		all := make(chan outcome, len(requests))
		for name, request := range requests {
			go func() { all <- outcome{name, ends(t, name, func() error { return request(ctx, c) })} }()
		}
		for range requests {
			o := <-all
			if o.err != nil {
				require.LessOrEqual(t, len(o.err.Error()), 2*transport.MaxText+200)
			}
			if o.name == "namespace" {
				require.Error(t, o.err, "there is no descriptor")
			}
		}
	})
}

// ends is the error of a request, which must return.
func ends(t *testing.T, name string, request func() error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- request() }()
	select {
	case err := <-done:
		return err
	case <-time.After(time.Minute):
		t.Error("the request does not end", name)
		return nil
	}
}

// An answer that switches protocols takes the connection out of the hands of net/http,
// and so out of the context of the request.
func TestAttackAnAnswerThatIsHeldOpenEndsWithTheContext(t *testing.T) {
	t.Parallel()
	for answer, granted := range map[string]bool{ // of a stream
		"HTTP/1.1 101 Switching Protocols\r\n\r\n":                                                         true,
		"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n{\"phase\":": true,
		"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 101 x\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n":      false,
		"HTTP/1.1 200 OK\r\n\r\n":                                              false,
		"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"phase\":":            false,
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"pha\r\n": false,
		"HTTP/1.1 204 No Content\r\nContent-Length: 9\r\n\r\n":                 false,
		"HTTP/1.1 302 Found\r\nLocation: /v1/state\r\n\r\n":                    false,
		"HTTP/1.1 409 Conflict\r\nContent-Length: 100\r\n\r\n{\"reason\":":     false,
		"HTTP/1.1 100 Continue\r\n\r\n":                                        false,
		"HTTP/1.1 20":                                                          false,
		"":                                                                     false,
	} {
		for name, request := range requests {
			t.Run(fmt.Sprintf("%s %.40q", name, answer), func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				closed := make(chan struct{})
				c := peer(t, []byte(answer), func(conn net.Conn) {
					cancel()
					_, _ = io.Copy(io.Discard, conn)
					close(closed)
				})
				err := ends(t, name, func() error { return request(ctx, c) })
				<-closed
				if name == "stream" && granted {
					return // whether ctx ended before is a race
				}
				done := strings.Contains(answer, "/1.1 204") && name == "question" ||
					strings.Contains(answer, "/1.1 20") && (name == "put" || name == "put to a target" || name == "call")
				if !done {
					require.Error(t, err)
				}
			})
		}
	}
}
