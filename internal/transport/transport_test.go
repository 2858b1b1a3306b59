package transport

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/carry"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// refused is the error of a refusal in these tests.
type refused struct {
	status int
	vmi.Finding
}

func (r *refused) Error() string { return r.Message }

// dialed returns a client of a peer at the address.
func dialed(addr string) *Client {
	return NewClient(Config{
		Dial:      func(ctx context.Context) (net.Conn, error) { return (&net.Dialer{}).DialContext(ctx, "tcp", addr) },
		Host:      "peer",
		Token:     "a-token",
		MaxAnswer: 1 << 10,
		Refused:   func(status int, f vmi.Finding) error { return &refused{status, f} },
	})
}

// answered returns a client of a server whose calls and streams are these.
func answered(t *testing.T, call func(options json.RawMessage) (json.RawMessage, error), open func() (net.Conn, error)) (c *Client, left chan protocol.Path) {
	t.Helper()
	left = make(chan protocol.Path, 10)
	s := &Server{
		Call: func(_ context.Context, _ protocol.Path, options json.RawMessage) (json.RawMessage, error) {
			return call(options)
		},
		Enter: func(p protocol.Path) (func(), error) {
			if p.Target.Name == "full" {
				return nil, Refusal(protocol.ReasonBusy, "there is no place")
			}
			return func() { left <- p }, nil
		},
		Open:   func(context.Context, protocol.Path) (net.Conn, error) { return open() },
		Logger: slog.New(slog.DiscardHandler),
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- s.Serve(ctx, l, &http.Server{ReadHeaderTimeout: time.Minute}, func(ctx context.Context) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				p, ok := protocol.ParsePath(r.URL.RequestURI())
				if !ok || r.Header.Get("Authorization") != "Bearer a-token" {
					w.WriteHeader(http.StatusTeapot)
					return
				}
				s.Answer(ctx, w, r, p)
			})
		})
	}()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	return dialed(l.Addr().String()), left
}

var pause = protocol.Path{Call: protocol.CallPause}

func TestARefusalHasTheReasonOfItsError(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want refused
	}{
		"of the protocol":       {Refusal(protocol.ReasonNoAgent, "no agent"), refused{409, vmi.Finding{Reason: protocol.ReasonNoAgent, Message: "no agent"}}},
		"with more about it":    {fmt.Errorf("pause: %w", Refusal(protocol.ReasonStale, "old")), refused{409, vmi.Finding{Reason: protocol.ReasonStale, Message: "pause: old"}}},
		"of a later release":    {Refusal("Later", "x"), refused{503, vmi.Finding{Reason: "Later", Message: "x"}}},
		"of what is not valid":  {fmt.Errorf("disk: %w", vmi.ErrInvalid), refused{422, vmi.Finding{Reason: protocol.ReasonInvalid, Message: "disk: invalid"}}},
		"of all else":           {errors.New("busy"), refused{503, vmi.Finding{Reason: protocol.ReasonUnavailable, Message: "busy"}}},
		"with what is no text":  {errors.New("a\x1b[2Jb"), refused{503, vmi.Finding{Reason: protocol.ReasonUnavailable, Message: "a [2Jb"}}},
		"with too long a text":  {errors.New(strings.Repeat("x", 5000)), refused{503, vmi.Finding{Reason: protocol.ReasonUnavailable, Message: strings.Repeat("x", MaxText)}}},
		"of a target elsewhere": {Refusal(protocol.ReasonNotFound, "gone"), refused{404, vmi.Finding{Reason: protocol.ReasonNotFound, Message: "gone"}}},
	} {
		t.Run(name, func(t *testing.T) {
			c, left := answered(t, func(json.RawMessage) (json.RawMessage, error) { return nil, tt.err }, func() (net.Conn, error) { return nil, tt.err })
			var got *refused
			require.ErrorAs(t, c.Call(t.Context(), pause, nil, nil), &got)
			require.Equal(t, tt.want, *got)
			console := protocol.Path{Stream: protocol.StreamConsole}
			_, err := c.Stream(t.Context(), console)
			require.ErrorAs(t, err, &got)
			require.Equal(t, tt.want, *got)
			require.Equal(t, console, <-left, "its place is free again")
		})
	}
}

func TestACallHasOptionsAndAnAnswer(t *testing.T) {
	echo := func(options json.RawMessage) (json.RawMessage, error) { return options, nil }
	c, _ := answered(t, echo, nil)
	var answer map[string]string
	require.NoError(t, c.Call(t.Context(), pause, map[string]string{"a": "b"}, &answer))
	require.Equal(t, map[string]string{"a": "b"}, answer)
	require.NoError(t, c.Call(t.Context(), pause, map[string]string{"a": "c"}, nil))
	require.ErrorIs(t, c.Call(t.Context(), pause, strings.Repeat("x", 1<<10), &answer), errTooLarge, "beyond MaxAnswer")
	require.ErrorIs(t, c.Call(t.Context(), pause, make([]struct{}, 400), &answer), errTooLarge)

	none, _ := answered(t, func(options json.RawMessage) (json.RawMessage, error) {
		if len(options) > 0 {
			return nil, errors.New("there are options")
		}
		return nil, nil
	}, nil)
	require.NoError(t, none.Call(t.Context(), pause, nil, &answer))
	require.Equal(t, map[string]string{"a": "b"}, answer, "it stays as it is")

	var got *refused
	require.ErrorAs(t, c.Call(t.Context(), pause, strings.Repeat("x", protocol.MaxOptions), nil), &got)
	require.Equal(t, refused{413, vmi.Finding{Reason: protocol.ReasonTooLarge, Message: "the request has more than 16384 bytes"}}, *got)
	_, err := c.Do(t.Context(), http.MethodPost, pause.String(), []byte("{")) //nolint:bodyclose // there is none
	require.ErrorAs(t, err, &got)
	require.Equal(t, refused{400, vmi.Finding{Reason: protocol.ReasonMalformed, Message: "the options are no JSON"}}, *got)
	_, err = c.Do(t.Context(), http.MethodPut, pause.String(), nil) //nolint:bodyclose // there is none
	require.ErrorAs(t, err, &got)
	require.Equal(t, refused{404, vmi.Finding{Reason: protocol.ReasonUnknown, Message: "PUT is no method of calls or streams"}}, *got)
}

func TestAnAnswerIsReadWithinLimits(t *testing.T) {
	var into any
	for name, tt := range map[string]struct {
		text string
		err  error
	}{
		"as long as it may be": {`"` + strings.Repeat("x", 98) + `"`, nil},
		"longer":               {`"` + strings.Repeat("x", 99) + `"`, errTooLarge},
		"no end":               {`{"a":`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			err := Read(strings.NewReader(tt.text), 100, &into)
			if name == "no end" {
				require.Error(t, err)
				return
			}
			require.ErrorIs(t, err, tt.err)
		})
	}
	many := "[" + strings.Repeat("1,", MaxValues) + "1]"
	require.ErrorIs(t, Decode([]byte(many), len(many), &into), errTooLarge)
}

func TestAStreamHasAPlaceUntilItEnds(t *testing.T) {
	c, left := answered(t, nil, func() (net.Conn, error) { return echo(), nil })
	p := protocol.Path{Target: protocol.Target{Namespace: "ns", Name: "vm", UID: "u"}, Stream: protocol.StreamConsole}
	conn, err := c.Stream(t.Context(), p)
	require.NoError(t, err)
	_, err = io.WriteString(conn, "hello")
	require.NoError(t, err)
	b := make([]byte, 5)
	_, err = io.ReadFull(conn, b)
	require.NoError(t, err)
	require.Equal(t, "hello", string(b))
	require.Empty(t, left)
	require.NoError(t, conn.Close())
	require.Equal(t, p, <-left)

	p.Target.Name = "full"
	_, err = c.Stream(t.Context(), p)
	var got *refused
	require.ErrorAs(t, err, &got)
	require.Equal(t, refused{409, vmi.Finding{Reason: protocol.ReasonBusy, Message: "there is no place"}}, *got)
}

func TestServeReturnsWhyItCannotListen(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	require.ErrorIs(t, Serve(t.Context(), l, &http.Server{ReadHeaderTimeout: time.Second}, time.Second), net.ErrClosed)
}

func TestAnUpgradedConnectionHasWhatCameWithTheRequest(t *testing.T) {
	ended := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := upgrade(w, "a-stream")
		if err != nil {
			t.Error(err)
			return
		}
		go func() {
			defer close(ended)
			<-r.Context().Done() // the request is over, and the stream is not
			carry.Both(context.Background(), c, echo())
		}()
	}))
	t.Cleanup(s.Close)
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	require.NoError(t, err)
	_, err = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: a-stream\r\n\r\nearly, ")
	require.NoError(t, err)
	r := bufio.NewReader(c)
	a, err := http.ReadResponse(r, nil)
	require.NoError(t, err)
	require.NoError(t, a.Body.Close())
	require.Equal(t, http.StatusSwitchingProtocols, a.StatusCode)
	require.Equal(t, "a-stream", a.Header.Get("Upgrade"))
	stream, err := unread(c, r)
	require.NoError(t, err)
	_, err = io.WriteString(stream, "and later")
	require.NoError(t, err)
	got := make([]byte, len("early, and later"))
	_, err = io.ReadFull(stream, got)
	require.NoError(t, err)
	require.Equal(t, "early, and later", string(got))
	require.NoError(t, c.Close())
	<-ended
}

func TestWhatIsNoRequestIsNotUpgraded(t *testing.T) {
	_, err := upgrade(httptest.NewRecorder(), "a-stream")
	require.ErrorIs(t, err, http.ErrNotSupported)
}

// echo is a connection that sends back what it is sent.
func echo() net.Conn {
	near, far := net.Pipe()
	go func() { _ = carry.Copy(far, far) }()
	return near
}

func TestOnlyTheCallsOfMigrationsHaveTheXMLOfADomain(t *testing.T) {
	echo := func(options json.RawMessage) (json.RawMessage, error) { return options, nil }
	c, _ := answered(t, echo, nil)
	long := strings.Repeat("x", protocol.MaxMigration-2)
	c.config.MaxAnswer = protocol.MaxMigration
	var answer string
	require.NoError(t, c.Call(t.Context(), protocol.Path{Call: protocol.CallMigrationPrepare}, long, &answer))
	require.Equal(t, long, answer)
	var got *refused
	require.ErrorAs(t, c.Call(t.Context(), protocol.Path{Call: protocol.CallMigrationPrepare}, long+"x", nil), &got)
	require.Equal(t, protocol.ReasonTooLarge, got.Reason)
	require.ErrorAs(t, c.Call(t.Context(), pause, long, nil), &got)
	require.Equal(t, protocol.ReasonTooLarge, got.Reason)
}
