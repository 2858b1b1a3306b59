package websocket

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/nettest"
)

const protocol = "plain.kubevirt.io"

// pair is both ends of a stream through a real server with TLS that prefers HTTP/2.
func pair(t testing.TB, f Framing) (client, server *Conn) {
	t.Helper()
	accepted := make(chan *Conn, 1)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := Accept(w, r, protocol, f)
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
	client, err = Dial(t.Context(), s.Client().Transport, u, protocol, f)
	require.NoError(t, err)
	server = <-accepted
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

func TestHowAStreamEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		end  func(peer *Conn)
		want error
	}{
		"closed":                           {func(p *Conn) { _ = p.Close() }, io.EOF},
		"cut":                              {func(p *Conn) { p.Cut() }, io.ErrUnexpectedEOF},
		"closed without a code":            {func(p *Conn) { _ = p.write(opClose, nil) }, io.EOF},
		"closed because the peer ends":     {func(p *Conn) { _ = p.write(opClose, []byte("\x03\xe9restart")) }, io.ErrUnexpectedEOF},
		"a frame of an unknown kind":       {func(p *Conn) { _ = p.write(0x3, nil) }, errProtocol},
		"a part of no message":             {func(p *Conn) { _ = p.write(opContinuation, nil) }, errProtocol},
		"a ping that is too long":          {func(p *Conn) { _ = p.write(opPing, make([]byte, 126)) }, errProtocol},
		"a length that is no length":       {func(p *Conn) { _, _ = p.wire.Write([]byte("\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff")) }, errProtocol},
		"a frame that the server masked":   {func(p *Conn) { _, _ = p.wire.Write([]byte("\x82\x81abcdx")) }, errProtocol},
		"cut in the middle of a header":    {func(p *Conn) { _, _ = p.wire.Write([]byte("\x82\x7e\x00")); p.Cut() }, io.ErrUnexpectedEOF},
		"cut in the middle of its payload": {func(p *Conn) { _, _ = p.wire.Write([]byte("\x82\x05")); p.Cut() }, io.ErrUnexpectedEOF},
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
		_, err := s.wire.Write([]byte(frame))
		require.NoError(t, err)
	}
	got := make([]byte, 4)
	_, err := io.ReadFull(c, got)
	require.NoError(t, err)
	require.Equal(t, "abcd", string(got))
}

func TestPingsAreAnswered(t *testing.T) {
	ours, theirs := net.Pipe()
	c := newConn(ours, bufio.NewReader(ours), client, Bytes, addr("test"))
	defer c.Cut()
	go func() { _, _ = theirs.Write([]byte("\x89\x02hi")) }()
	h, err := readHeader(theirs)
	require.NoError(t, err)
	b := make([]byte, h.length)
	_, err = io.ReadFull(theirs, b)
	require.NoError(t, err)
	require.True(t, h.masked)
	mask(b, h.key, 0)
	require.Equal(t, "hi", string(b))
	require.EqualValues(t, opPong, h.op)
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
	require.ErrorIs(t, err, errTooLarge)
	_ = s.write(opBinary, make([]byte, maxDatagram+1))
	_, err = c.Read(b)
	require.ErrorIs(t, err, errTooLarge)
}

func TestCloseDoesNotWaitForAPeerThatIsSilent(t *testing.T) {
	ours, theirs := net.Pipe()
	defer func() { _ = theirs.Close() }()
	c := newConn(ours, bufio.NewReader(ours), client, Bytes, addr("test"))
	begun := time.Now()
	require.ErrorContains(t, c.Close(), "has not confirmed")
	require.Less(t, time.Since(begun), 10*closing)
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
	_, err = Dial(t.Context(), http.DefaultTransport, u, protocol, Bytes)
	var refused *Refused
	require.True(t, errors.As(err, &refused), "%v", err)
	require.Equal(t, http.StatusConflict, refused.Status)
	require.Len(t, refused.Body, maxRefusal)
}

func TestAnAnswerThatAgreesToSomethingElseIsAnError(t *testing.T) {
	for name, header := range map[string]string{
		"another key":         "Sec-WebSocket-Accept: other",
		"another subprotocol": "Sec-WebSocket-Accept: KEY\r\nSec-WebSocket-Protocol: other",
		"an extension":        "Sec-WebSocket-Accept: KEY\r\nSec-WebSocket-Extensions: permessage-deflate",
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				c, _, err := http.NewResponseController(w).Hijack()
				if err == nil {
					_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
						strings.ReplaceAll(header, "KEY", accepted(r.Header.Get("Sec-WebSocket-Key")))+"\r\n\r\n")
					_ = c.Close()
				}
			}))
			defer s.Close()
			u, err := url.Parse(s.URL)
			require.NoError(t, err)
			_, err = Dial(t.Context(), &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}}, u, protocol, Bytes)
			require.ErrorIs(t, err, errProtocol)
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
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			for k, v := range map[string]string{"Connection": "keep-alive, Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="} {
				r.Header.Set(k, v)
			}
			require.True(t, Asked(r))
			change(r)
			_, err := Accept(httptest.NewRecorder(), r, protocol, Bytes)
			require.ErrorIs(t, err, ErrNoUpgrade)
		})
	}
	require.Equal(t, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", accepted("dGhlIHNhbXBsZSBub25jZQ=="), "the example of RFC 6455")
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
		c := newConn(&wire{Reader: bytes.NewReader(b)}, bufio.NewReader(bytes.NewReader(b)), client, framing, addr("fuzz"))
		n, err := io.Copy(io.Discard, c)
		require.LessOrEqual(t, n, int64(len(b)))
		if err != nil {
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		}
		require.NoError(t, c.Close())
	})
}

func FuzzAHeaderIsReadAsItIsWritten(f *testing.F) {
	f.Add(true, byte(2), true, uint64(70000))
	f.Fuzz(func(t *testing.T, final bool, op byte, masked bool, length uint64) {
		h := header{final: final, op: op & 0xf, masked: masked, length: length}
		if masked {
			h.key = [4]byte{1, 2, 3, 4}
		}
		got, err := readHeader(bytes.NewReader(h.appendTo(nil)))
		require.Equal(t, h.check() == nil, err == nil, "%v", err)
		require.Equal(t, h, got)
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

// wire is a connection that takes all that is written.
type wire struct{ io.Reader }

func (*wire) Write(b []byte) (int, error) { return len(b), nil }

func (*wire) Close() error { return nil }
