package console

import (
	"bytes"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// port serves one connection after another, as QEMU does, and returns what it is
// sent.
func port(t *testing.T) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.Copy(conn, conn)
			_ = conn.Close()
		}
	}()
	return socket
}

func exchange(t *testing.T, conn net.Conn) {
	t.Helper()
	_, err := conn.Write([]byte("x"))
	require.NoError(t, err)
	_, err = io.ReadFull(conn, make([]byte, 1))
	require.NoError(t, err)
}

func TestANewConsoleEndsTheOneBefore(t *testing.T) {
	s := &Serial{Socket: port(t)}
	first, err := s.Open(t.Context())
	require.NoError(t, err)
	exchange(t, first)
	second, err := s.Open(t.Context())
	require.NoError(t, err)
	defer second.Close()
	exchange(t, second)
	_, err = first.Read(make([]byte, 1))
	require.ErrorIs(t, err, net.ErrClosed)
}

func TestWhatIsTypedGoesToTheConsoleThatIsOpen(t *testing.T) {
	s := &Serial{Socket: port(t)}
	conn, err := s.Open(t.Context())
	require.NoError(t, err)
	exchange(t, conn)
	require.NoError(t, s.Type(t.Context(), []byte("typed")))
	echo := make([]byte, 5)
	_, err = io.ReadFull(conn, echo)
	require.NoError(t, err)
	require.Equal(t, "typed", string(echo))
	exchange(t, conn)
}

func TestTypingNeedsNoConsoleAndPreventsNone(t *testing.T) {
	s := &Serial{Socket: port(t)}
	for range 3 {
		// More than all buffers hold, if nothing read the answer.
		require.NoError(t, s.Type(t.Context(), bytes.Repeat([]byte("x"), 1<<20)))
		conn, err := s.Open(t.Context())
		require.NoError(t, err)
		exchange(t, conn)
		require.NoError(t, s.Type(t.Context(), []byte("y")))
		require.NoError(t, conn.Close())
	}
}

func TestTypingWithoutAPortIsAnError(t *testing.T) {
	require.ErrorIs(t, (&Serial{Socket: filepath.Join(t.TempDir(), "nothing")}).Type(t.Context(), []byte("x")), os.ErrNotExist)
}

func TestAConsoleThatWasClosedIsFollowedByAnother(t *testing.T) {
	s := &Serial{Socket: port(t)}
	for range 3 {
		conn, err := s.Open(t.Context())
		require.NoError(t, err)
		exchange(t, conn)
		require.NoError(t, conn.Close())
	}
}

func TestAPortThatIsNotThereIsAnError(t *testing.T) {
	_, err := (&Serial{Socket: filepath.Join(t.TempDir(), "nothing")}).Open(t.Context())
	require.ErrorIs(t, err, os.ErrNotExist)
}
