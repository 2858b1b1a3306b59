package websocket_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	gorilla "github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/internal/websocket"
)

// joined serves websockets that are joined with what far returns.
func joined(tb testing.TB, far func() net.Conn) *httptest.Server {
	ended := make(chan struct{})
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l, err := websocket.Upgrade(w, r, websocket.Options{Ping: 10 * time.Second, Idle: time.Minute})
		if err == nil {
			go l.Join(far(), ended) // the request ends
		}
	}))
	tb.Cleanup(server.Close)
	tb.Cleanup(func() { close(ended) })
	return server
}

// dialRaw opens a websocket whose frames the caller reads.
func dialRaw(tb testing.TB, server *httptest.Server) net.Conn {
	c, err := tls.Dial("tcp", server.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true}) // of a test
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = c.Close() })
	_, err = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
	require.NoError(tb, err)
	head := make([]byte, 0, 512)
	for !bytes.HasSuffix(head, []byte("\r\n\r\n")) {
		n, err := c.Read(head[len(head) : len(head)+1])
		require.NoError(tb, err)
		head = head[:len(head)+n]
	}
	require.Contains(tb, string(head), " 101 ")
	return c
}

// BenchmarkLink measures the bytes that go to and come from a client, and what an open
// stream that carries nothing takes of memory, with its client's end of the connection.
func BenchmarkLink(b *testing.B) {
	const block = 32 << 10
	local := func(b *testing.B) (near, far net.Conn) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(b, err)
		defer l.Close()
		near, err = net.Dial("tcp", l.Addr().String())
		require.NoError(b, err)
		far, err = l.Accept()
		require.NoError(b, err)
		return near, far
	}
	b.Run("to-client", func(b *testing.B) {
		near, far := local(b)
		c := dialRaw(b, joined(b, func() net.Conn { return near }))
		go func() {
			data := make([]byte, block)
			for {
				if _, err := far.Write(data); err != nil {
					return
				}
			}
		}()
		b.SetBytes(block)
		for b.Loop() {
			_, err := io.CopyN(struct{ io.Writer }{io.Discard}, c, block)
			require.NoError(b, err)
		}
	})
	b.Run("from-client", func(b *testing.B) {
		near, far := local(b)
		server := joined(b, func() net.Conn { return near })
		d := gorilla.Dialer{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, WriteBufferSize: block} // of a test
		c, a, err := d.DialContext(b.Context(), "wss"+strings.TrimPrefix(server.URL, "https"), nil)
		require.NoError(b, err)
		defer a.Body.Close()
		defer c.Close()
		in := bufio.NewReaderSize(far, block)
		data := make([]byte, block)
		b.SetBytes(block)
		go func() {
			for c.WriteMessage(gorilla.BinaryMessage, data) == nil {
			}
		}()
		for b.Loop() {
			_, err := io.CopyN(struct{ io.Writer }{io.Discard}, in, block)
			require.NoError(b, err)
		}
	})
	b.Run("memory", func(b *testing.B) {
		const streams = 200
		for b.Loop() {
			server := joined(b, func() net.Conn { near, _ := net.Pipe(); return near })
			_ = dialRaw(b, server)
			before := testenv.InUse()
			for range streams {
				_ = dialRaw(b, server)
			}
			b.ReportMetric(float64(testenv.InUse()-before)/streams, "B/stream")
		}
	})
}
