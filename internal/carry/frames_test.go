package carry_test

import (
	"bytes"
	"io"
	"net"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/carry"
)

// socket is a connection of datagrams that answers each with itself, and refuses some.
type socket struct {
	net.Conn
	refused int
	all     chan []byte
}

func (s *socket) Write(b []byte) (int, error) {
	s.all <- bytes.Clone(b)
	return len(b), nil
}

func (s *socket) Read(b []byte) (int, error) {
	if s.refused > 0 {
		s.refused--
		return 0, syscall.ECONNREFUSED
	}
	d, ok := <-s.all
	if !ok {
		return 0, io.EOF
	}
	return copy(b, d), nil
}

func TestDatagramsKeepTheirEndsOnAStream(t *testing.T) {
	near, far := net.Pipe()
	s := &socket{refused: 2, all: make(chan []byte, 10)}
	go carry.Both(t.Context(), far, carry.Frames(&closing{s, far}))
	d := carry.Datagrams(near)
	for _, n := range []int{1, 0, 1472, 65507, carry.Little, carry.Little + 1, 3} {
		want := bytes.Repeat([]byte{byte(n)}, n)
		_, err := d.Write(want)
		require.NoError(t, err)
		b := make([]byte, 1<<16)
		got, err := d.Read(b)
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, b[:got]), "%d bytes, got %d", n, got)
	}
	_, err := d.Write(make([]byte, 1<<16))
	require.NoError(t, err, "it is lost, as a datagram that no network takes")
	_, err = d.Write([]byte("cut off"))
	require.NoError(t, err)
	short := make([]byte, 3)
	n, err := d.Read(short)
	require.NoError(t, err)
	require.Equal(t, "cut", string(short[:n]))
	_, err = d.Write([]byte("next"))
	require.NoError(t, err)
	b := make([]byte, 10)
	n, err = d.Read(b)
	require.NoError(t, err)
	require.Equal(t, "next", string(b[:n]))
	require.NoError(t, near.Close())
}

// closing closes what it is joined with, too.
type closing struct {
	net.Conn
	other net.Conn
}

func (c *closing) Close() error { return c.other.Close() }

// read is a connection that only reads.
type read struct {
	net.Conn
	io.Reader
}

func (r read) Read(b []byte) (int, error) { return r.Reader.Read(b) }

func TestAFrameThatIsCutIsAnError(t *testing.T) {
	for name, tt := range map[string]struct {
		bytes string
		want  error
	}{
		"nothing":         {"", io.EOF},
		"half a length":   {"\x00", io.ErrUnexpectedEOF},
		"no datagram":     {"\x00\x03", io.ErrUnexpectedEOF},
		"half a datagram": {"\x00\x03ab", io.ErrUnexpectedEOF},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := carry.Datagrams(read{Reader: iotest.OneByteReader(bytes.NewBufferString(tt.bytes))}).Read(make([]byte, 10))
			require.ErrorIs(t, err, tt.want)
		})
	}
}

// What comes from a launcher and what comes from a user are frames of any form.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("\x00\x01a\x00\x00\x00\x02bc"), 1)
	f.Add([]byte("\xff\xff"), 3)
	f.Fuzz(func(t *testing.T, stream []byte, size int) {
		s := &socket{all: make(chan []byte, len(stream)+1)}
		w := carry.Frames(s)
		for rest := stream; len(rest) > 0; {
			n := min(max(size, 1), len(rest))
			written, err := w.Write(rest[:n])
			require.NoError(t, err)
			require.Equal(t, n, written)
			rest = rest[n:]
		}
		close(s.all)
		d := carry.Datagrams(read{Reader: bytes.NewReader(stream)})
		for b := make([]byte, 1<<16); ; {
			n, err := d.Read(b)
			want, whole := <-s.all
			require.Equal(t, whole, err == nil, "both have the same datagrams")
			if err != nil {
				return
			}
			require.True(t, bytes.Equal(want, b[:n]))
		}
	})
}
