package websocket

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/nettest"
)

// pair is both ends of a stream through a real server with TLS that prefers HTTP/2.
func pair(t testing.TB, f Framing) (client, server *Conn) {
	t.Helper()
	accepted := make(chan *Conn, 1)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := Accept(w, r, Options{Framing: f})
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		accepted <- c
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL + "/stream")
	require.NoError(t, err)
	client, err = Dial(t.Context(), s.Client().Transport, u, f)
	require.NoError(t, err)
	server = <-accepted
	client.link.closing, server.link.closing = time.Minute, time.Minute // a busy host takes long to read what was sent
	t.Cleanup(func() { client.Cut(); server.Cut() })
	return client, server
}

func TestAStreamIsANetConn(t *testing.T) {
	for name, turn := range map[string]bool{"from the client": false, "from the server": true} {
		t.Run(name, func(t *testing.T) {
			nettest.TestConn(t, func() (net.Conn, net.Conn, func(), error) {
				c, s := pair(t, Bytes)
				stop := func() { c.Cut(); s.Cut() }
				if turn {
					return s, c, stop, nil
				}
				return c, s, stop, nil
			})
		})
	}
}

func TestBytesWrittenJustBeforeCloseArrive(t *testing.T) {
	for range 20 {
		c, s := pair(t, Bytes)
		want := bytes.Repeat([]byte("0123456789abcdef"), 1<<14)
		var both sync.WaitGroup
		both.Go(func() {
			_, err := c.Write(want)
			require.NoError(t, err)
			require.NoError(t, c.Close())
		})
		got, err := io.ReadAll(s)
		require.NoError(t, err, "a close frame is io.EOF")
		require.True(t, bytes.Equal(want, got))
		both.Wait()
		require.NoError(t, s.Close())
	}
}

func TestAWriteThatFailedHasWrittenNothing(t *testing.T) {
	c, _ := pair(t, Bytes)
	n, err := sender{c.link}.Write([]byte("data"))
	require.NoError(t, err)
	require.Equal(t, 4, n)
	c.Cut()
	n, err = sender{c.link}.Write([]byte("data"))
	require.Error(t, err)
	require.Zero(t, n)
}

func TestHowAStreamEnds(t *testing.T) {
	raw := func(frame string) func(*Conn) {
		return func(p *Conn) { _, _ = p.link.ws.NetConn().Write([]byte(frame)) }
	}
	for name, tt := range map[string]struct {
		end  func(peer *Conn)
		want error
	}{
		"closed":                           {func(p *Conn) { _ = p.Close() }, io.EOF},
		"cut":                              {func(p *Conn) { p.Cut() }, io.ErrUnexpectedEOF},
		"closed without a code":            {raw("\x88\x00"), io.EOF},
		"closed because the peer ends":     {raw("\x88\x09\x03\xe9restart"), io.ErrUnexpectedEOF},
		"a frame of an unknown kind":       {raw("\x83\x00"), io.ErrUnexpectedEOF},
		"a part of no message":             {raw("\x80\x00"), io.ErrUnexpectedEOF},
		"a ping that is too long":          {raw("\x89\x7e\x00\x7e"), io.ErrUnexpectedEOF},
		"a compressed frame":               {raw("\xc2\x01a"), io.ErrUnexpectedEOF},
		"a length that is no length":       {raw("\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff"), io.ErrUnexpectedEOF},
		"a frame that the server masked":   {raw("\x82\x81abcdx"), io.ErrUnexpectedEOF},
		"a message that is too large":      {raw("\x82\x7f\x00\x00\x00\x00\x00\x10\x00\x01"), io.ErrUnexpectedEOF},
		"cut in the middle of a header":    {func(p *Conn) { raw("\x82\x7e\x00")(p); p.Cut() }, io.ErrUnexpectedEOF},
		"cut in the middle of its payload": {func(p *Conn) { raw("\x82\x05")(p); p.Cut() }, io.ErrUnexpectedEOF},
	} {
		t.Run(name, func(t *testing.T) {
			c, s := pair(t, Bytes)
			_, err := s.Write([]byte("data"))
			require.NoError(t, err)
			b := make([]byte, 10)
			n, err := c.Read(b)
			require.NoError(t, err)
			require.Equal(t, "data", string(b[:n]))
			tt.end(s)
			_, err = c.Read(b)
			require.ErrorIs(t, err, tt.want)
			require.NotErrorIs(t, err, other(tt.want))
			_, err = c.Write(make([]byte, 1<<20))
			require.Error(t, err)
			require.NoError(t, c.Close())
			_, err = c.Read(b)
			require.ErrorIs(t, err, net.ErrClosed)
			_, err = c.Write(b)
			require.ErrorIs(t, err, net.ErrClosed)
		})
	}
}

func TestAPeerGetsTheReasonWhyTheOtherEndIsGone(t *testing.T) {
	for name, tt := range map[string]struct {
		gone   func() string
		code   int
		reason string
	}{
		"it is to connect again":    {func() string { return "moved to node n2" }, websocket.CloseGoingAway, "moved to node n2"},
		"with as much as there may": {func() string { return strings.Repeat("x", 300) }, websocket.CloseGoingAway, strings.Repeat("x", 123)},
		"it is not":                 {func() string { return "" }, websocket.CloseNormalClosure, ""},
		"nothing says why":          {nil, websocket.CloseNormalClosure, ""},
	} {
		t.Run(name, func(t *testing.T) {
			near, far := net.Pipe()
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				l, err := Upgrade(w, r, Options{Gone: tt.gone})
				if err != nil {
					t.Error(err)
					return
				}
				l.Join(near, nil)
			}))
			defer s.Close()
			c, answer, err := websocket.DefaultDialer.DialContext(t.Context(), "ws"+strings.TrimPrefix(s.URL, "http"), nil)
			require.NoError(t, err)
			defer answer.Body.Close()
			defer c.Close()
			require.NoError(t, far.Close())
			_, _, err = c.ReadMessage()
			var closed *websocket.CloseError
			require.ErrorAs(t, err, &closed)
			require.Equal(t, tt.code, closed.Code)
			require.Equal(t, tt.reason, closed.Text)
		})
	}
}

// other is the end that want is not.
func other(want error) error {
	if errors.Is(want, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return io.EOF
}

func TestFragmentsPingsAndTextsAreTakenApart(t *testing.T) {
	c, s := pair(t, Bytes)
	for _, frame := range []string{"\x02\x02ab", "\x89\x02hi", "\x00\x00", "\x80\x01c", "\x01\x02no", "\x80\x02no", "\x82\x01d"} {
		_, err := s.link.ws.NetConn().Write([]byte(frame))
		require.NoError(t, err)
	}
	got := make([]byte, 4)
	_, err := io.ReadFull(c, got)
	require.NoError(t, err)
	require.Equal(t, "abcd", string(got))
}

func TestADatagramIsAMessage(t *testing.T) {
	c, s := pair(t, Datagrams)
	sent := []string{"one", "", strings.Repeat("x", maxDatagram), "longer than the reader takes", "last"}
	go func() {
		for _, d := range sent {
			_, _ = c.Write([]byte(d))
		}
	}()
	b := make([]byte, maxDatagram)
	for _, size := range []int{10, 10, maxDatagram, 6, 10} {
		n, err := s.Read(b[:size])
		require.NoError(t, err)
		require.Equal(t, sent[0][:min(size, len(sent[0]))], string(b[:n]))
		sent = sent[1:]
	}
	_, err := c.Write(make([]byte, maxDatagram+1))
	require.ErrorContains(t, err, "write a datagram of 65536 bytes")
	_ = s.link.ws.WriteMessage(websocket.BinaryMessage, make([]byte, maxDatagram+1))
	_, err = c.Read(b)
	require.ErrorIs(t, err, websocket.ErrReadLimit)
}

// inMemory is a transport whose connections are pipes, and the handler at their other end.
// In a bubble of synctest they have its time.
type inMemory http.HandlerFunc

func (h inMemory) RoundTrip(r *http.Request) (*http.Response, error) {
	near, far := net.Pipe()
	go h(hijacked{conn: far}, r)
	b := bufio.NewReader(near)
	answer, err := http.ReadResponse(b, r)
	if err != nil {
		return nil, err
	}
	answer.Body = struct {
		io.Reader
		io.WriteCloser
	}{b, near}
	return answer, nil
}

// hijacked is the answer to a request whose connection is taken over.
type hijacked struct {
	http.ResponseWriter // nil
	conn                net.Conn
}

func (h hijacked) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return h.conn, bufio.NewReadWriter(bufio.NewReader(h.conn), bufio.NewWriter(h.conn)), nil
}

func TestAPeerThatIsSilentIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const idle = time.Minute
		ended := make(chan time.Duration, 1)
		serve := inMemory(func(w http.ResponseWriter, r *http.Request) {
			l, err := Upgrade(w, r, Options{Ping: idle / 10, Idle: idle})
			if err != nil {
				t.Error(err)
				return
			}
			a, b := net.Pipe()
			defer func() { _ = b.Close() }()
			begun := time.Now()
			l.Join(a, nil)
			ended <- time.Since(begun)
		})
		u := &url.URL{Scheme: "http", Host: "peer"}
		silent, err := serve.RoundTrip(handshake())
		require.NoError(t, err)
		time.AfterFunc(2*idle, func() { _ = silent.Body.Close() })
		_, _ = io.Copy(io.Discard, silent.Body)
		require.Equal(t, idle, <-ended)
		// A Conn that is read answers pings, though its user sends nothing.
		c, err := Dial(t.Context(), serve, u, Bytes)
		require.NoError(t, err)
		require.NoError(t, c.SetReadDeadline(time.Now().Add(4*idle)))
		_, err = c.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.NoError(t, c.Close())
		require.Equal(t, 4*idle, <-ended)
	})
}

func TestAStreamTakesLittleMemory(t *testing.T) {
	const streams = 500
	ended := make(chan struct{})
	var all sync.WaitGroup
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l, err := Upgrade(w, r, Options{Ping: time.Minute, Idle: time.Hour})
		if err != nil {
			t.Error(err)
			return
		}
		near, far := net.Pipe()
		all.Go(func() {
			_, _ = io.CopyBuffer(struct{ io.Writer }{far}, struct{ io.Reader }{far}, make([]byte, 1<<10))
			_ = far.Close()
		})
		l.Join(near, ended)
	}))
	defer s.Close()
	used := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc + m.StackInuse
	}
	before := used()
	d := websocket.Dialer{WriteBufferPool: outgoing, WriteBufferSize: chunk}
	for range streams {
		c, _, err := d.DialContext(t.Context(), "ws"+strings.TrimPrefix(s.URL, "http"), nil) //nolint:bodyclose // a websocket has none
		require.NoError(t, err)
		defer func() { _ = c.Close() }()
		require.NoError(t, c.WriteMessage(websocket.BinaryMessage, make([]byte, chunk)))
		for n := 0; n < chunk; {
			_, b, err := c.ReadMessage()
			require.NoError(t, err)
			n += len(b)
		}
		all.Go(func() { _, _, _ = c.ReadMessage() })
	}
	each := (used() - before) / streams
	t.Logf("%d bytes a stream, with its client, its guest and net/http", each)
	require.Less(t, each, uint64(64<<10))
	close(ended)
	all.Wait()
}

func TestCloseDoesNotWaitForAPeerThatIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := inMemory(func(w http.ResponseWriter, r *http.Request) {
			if l, err := Upgrade(w, r, Options{}); err == nil {
				_, _ = io.Copy(io.Discard, l.ws.NetConn())
			}
		})
		c, err := Dial(t.Context(), silent, &url.URL{Scheme: "http", Host: "peer"}, Bytes)
		require.NoError(t, err)
		begun := time.Now()
		require.ErrorContains(t, c.Close(), "has not confirmed")
		require.Equal(t, closing, time.Since(begun))
	})
}

func TestARefusalIsBounded(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusConflict)
		for range 100 {
			_, _ = w.Write(make([]byte, maxRefusal))
		}
	}))
	defer s.Close()
	u, err := url.Parse(s.URL)
	require.NoError(t, err)
	_, err = Dial(t.Context(), http.DefaultTransport, u, Bytes)
	var refused *Refused
	require.True(t, errors.As(err, &refused), "%v", err)
	require.Equal(t, http.StatusConflict, refused.Status)
	require.Len(t, refused.Body, maxRefusal)
}

func TestAnAnswerThatAgreesToSomethingElseIsAnError(t *testing.T) {
	for name, tt := range map[string]struct{ header, words string }{
		"another key":         {"Sec-WebSocket-Accept: other", "bad handshake"},
		"another subprotocol": {"Sec-WebSocket-Accept: KEY\r\nSec-WebSocket-Protocol: other", `subprotocol "other"`},
		"an extension":        {"Sec-WebSocket-Accept: KEY\r\nSec-WebSocket-Extensions: permessage-deflate", `extension "permessage-deflate"`},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				c, _, err := http.NewResponseController(w).Hijack()
				if err == nil {
					_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
						strings.ReplaceAll(tt.header, "KEY", accepted(r.Header.Get("Sec-WebSocket-Key")))+"\r\n\r\n")
					_ = c.Close()
				}
			}))
			defer s.Close()
			u, err := url.Parse(s.URL)
			require.NoError(t, err)
			_, err = Dial(t.Context(), &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}}, u, Bytes)
			require.ErrorContains(t, err, tt.words)
		})
	}
}

func TestARequestThatAsksForNoWebsocketIsNotAccepted(t *testing.T) {
	for name, change := range map[string]func(*http.Request){
		"no upgrade":      func(r *http.Request) { r.Header.Del("Upgrade") },
		"no connection":   func(r *http.Request) { r.Header.Set("Connection", "keep-alive") },
		"another version": func(r *http.Request) { r.Header.Set("Sec-WebSocket-Version", "8") },
		"a short key":     func(r *http.Request) { r.Header.Set("Sec-WebSocket-Key", "AAAA") },
		"another method":  func(r *http.Request) { r.Method = http.MethodPost },
	} {
		t.Run(name, func(t *testing.T) {
			r := handshake()
			require.True(t, Asked(r))
			change(r)
			_, err := Accept(httptest.NewRecorder(), r, Options{})
			require.ErrorIs(t, err, ErrNoUpgrade)
		})
	}
}

// handshake is a request that asks for a websocket.
func handshake() *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	for k, v := range map[string]string{"Connection": "keep-alive, Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="} {
		r.Header.Set(k, v)
	}
	return r
}

func FuzzWhatAPeerSends(f *testing.F) {
	f.Add([]byte("\x82\x01a"), true)
	f.Add([]byte("\x02\x01a\x89\x01b\x80\x01c\x88\x02\x03\xe8"), false)
	f.Add([]byte("\x82\x7e\x00\x05hello"), true)
	f.Add([]byte("\x82\x7f\x00\x00\x00\x00\x00\x00\x00\x05hello"), false)
	f.Fuzz(func(t *testing.T, b []byte, bytewise bool) {
		framing := Bytes
		if !bytewise {
			framing = Datagrams
		}
		c, err := Dial(t.Context(), peer(b), &url.URL{Scheme: "http", Host: "peer"}, framing)
		require.NoError(t, err)
		n, err := io.Copy(io.Discard, c)
		require.LessOrEqual(t, n, int64(len(b)))
		if err != nil {
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		}
		require.NoError(t, c.Close())
	})
}

func BenchmarkStream(b *testing.B) {
	c, s := pair(b, Bytes)
	go func() { _, _ = io.Copy(io.Discard, s) }()
	data := make([]byte, 32<<10)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := c.Write(data); err != nil {
			b.Fatal(err)
		}
	}
}

// accepted is the answer to the key of a handshake.
func accepted(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// peer is a transport to a peer that sends these bytes and takes all that is sent.
type peer []byte

func (p peer) RoundTrip(r *http.Request) (*http.Response, error) {
	h := http.Header{"Upgrade": {"websocket"}, "Connection": {"Upgrade"}, "Sec-Websocket-Accept": {accepted(r.Header.Get("Sec-Websocket-Key"))}}
	return &http.Response{StatusCode: http.StatusSwitchingProtocols, Header: h, Body: wire{bytes.NewReader(p)}}, nil
}

type wire struct{ io.Reader }

func (wire) Write(b []byte) (int, error) { return len(b), nil }

func (wire) Close() error { return nil }
