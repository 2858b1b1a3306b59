package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// streaming returns a client of a server whose console is the other end of each
// connection that inner takes.
func streaming(t testing.TB, inner func(net.Conn)) *Client {
	t.Helper()
	_, c := serve(t, ServerConfig{Streams: map[protocol.Stream]func(context.Context) (net.Conn, error){
		protocol.StreamConsole: func(context.Context) (net.Conn, error) {
			near, far := net.Pipe()
			go inner(far)
			return near, nil
		},
		protocol.StreamScreen: func(context.Context) (net.Conn, error) { return nil, errors.New("no screen yet") },
	}})
	return c
}

func TestAStreamCarriesBytesInBothDirectionsUntilItsInnerEndCloses(t *testing.T) {
	c := streaming(t, func(far net.Conn) {
		_, _ = far.Write([]byte("login: "))
		b := make([]byte, 5)
		_, _ = io.ReadFull(far, b)
		_, _ = far.Write(append([]byte("hello "), b...))
		_ = far.Close()
	})
	conn, err := c.Stream(t.Context(), protocol.StreamConsole)
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("guest"))
	require.NoError(t, err)
	all, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Equal(t, "login: hello guest", string(all))
}

func TestAPortIsOpenedByItsName(t *testing.T) {
	asked := make(chan string, 1)
	_, c := serve(t, ServerConfig{Port: func(_ context.Context, network string, port uint16) (net.Conn, error) {
		asked <- fmt.Sprint(network, " ", port)
		if port == 81 {
			return nil, errors.New("connection refused")
		}
		near, far := net.Pipe()
		go func() { _, _ = io.Copy(far, far) }()
		return near, nil
	}})
	conn, err := c.Stream(t.Context(), protocol.PortStream("udp", 53))
	require.NoError(t, err)
	defer conn.Close()
	require.Equal(t, "udp 53", <-asked)
	_, err = conn.Write([]byte("hello"))
	require.NoError(t, err)
	b := make([]byte, 5)
	_, err = io.ReadFull(conn, b)
	require.NoError(t, err)
	require.Equal(t, "hello", string(b))

	_, err = c.Stream(t.Context(), protocol.PortStream("tcp", 81))
	var refused *Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, protocol.ReasonUnavailable, refused.Reason)
	require.Contains(t, refused.Message, "connection refused")
	<-asked
	for _, name := range []protocol.Stream{"port-tcp-0", "port-tcp-99999", "port-sctp-1"} {
		_, err = c.Stream(t.Context(), name)
		require.ErrorAs(t, err, &refused)
		require.Equal(t, protocol.ReasonUnknown, refused.Reason)
	}
	_, older := serve(t, ServerConfig{})
	_, err = older.Stream(t.Context(), protocol.PortStream("tcp", 22))
	require.ErrorAs(t, err, &refused)
	require.Equal(t, protocol.ReasonUnknown, refused.Reason, "a launcher that knows no ports")
}

func TestAStreamEndsAtItsInnerEndWhenTheClientCloses(t *testing.T) {
	ended := make(chan struct{})
	c := streaming(t, func(far net.Conn) {
		_, _ = io.Copy(io.Discard, far)
		close(ended)
	})
	conn, err := c.Stream(t.Context(), protocol.StreamConsole)
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	<-ended
}

func TestAStreamOutlivesTheContextOfItsOpening(t *testing.T) {
	c := streaming(t, func(far net.Conn) { _, _ = io.Copy(far, far) })
	ctx, cancel := context.WithCancel(t.Context())
	conn, err := c.Stream(ctx, protocol.StreamConsole)
	require.NoError(t, err)
	defer conn.Close()
	cancel()
	_, err = conn.Write([]byte("x"))
	require.NoError(t, err)
	_, err = io.ReadFull(conn, make([]byte, 1))
	require.NoError(t, err)
}

func TestAStreamEndsWithItsServer(t *testing.T) {
	s := NewServer(ServerConfig{Streams: map[protocol.Stream]func(context.Context) (net.Conn, error){
		protocol.StreamConsole: func(context.Context) (net.Conn, error) {
			near, far := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, far) }()
			return near, nil
		},
	}})
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	conn, err := NewClient(dialTo(path)).Stream(t.Context(), protocol.StreamConsole)
	require.NoError(t, err)
	defer conn.Close()
	cancel()
	require.NoError(t, <-done)
	_, err = conn.Read(make([]byte, 1))
	require.Error(t, err)
}

func TestAStreamThatIsRefusedHasAReason(t *testing.T) {
	c := streaming(t, nil)
	for name, want := range map[protocol.Stream]Error{
		protocol.StreamScreen: {503, vmi.Finding{Reason: protocol.ReasonUnavailable, Message: "no screen yet"}},
		"of/the future":       {404, vmi.Finding{Reason: protocol.ReasonUnknown, Message: `this launcher has no stream "of/the future"`}},
	} {
		_, err := c.Stream(t.Context(), name)
		var refusal *Error
		require.ErrorAs(t, err, &refusal)
		require.Equal(t, want, *refusal)
	}
}

func TestAStreamIsNotWaitedForBeyondItsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path) // and no answer
	require.NoError(t, err)
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = NewClient(dialTo(path)).Stream(ctx, protocol.StreamConsole)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// BenchmarkStream measures what an open stream that carries nothing takes of memory in the
// launcher and the handler's client together, with the pipe that stands for QEMU's socket.
func BenchmarkStream(b *testing.B) {
	b.Run("memory", func(b *testing.B) {
		const streams = mostStreams - 1
		for b.Loop() {
			c := streaming(b, func(far net.Conn) { _, _ = far.Read(make([]byte, 1)) })
			open := func() {
				conn, err := c.Stream(b.Context(), protocol.StreamConsole)
				require.NoError(b, err)
				b.Cleanup(func() { _ = conn.Close() })
			}
			open()
			before := testenv.InUse()
			for range streams {
				open()
			}
			b.ReportMetric(float64(testenv.InUse()-before)/streams, "B/stream")
		}
	})
}
