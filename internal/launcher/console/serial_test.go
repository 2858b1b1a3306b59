package console

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
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

// queue listens as QEMU does: with room for one connection that waits, and the next is
// accepted when the one before has ended.
func queue(t *testing.T) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "s")
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	require.NoError(t, unix.Bind(fd, &unix.SockaddrUnix{Name: socket}))
	require.NoError(t, unix.Listen(fd, 1))
	f := os.NewFile(uintptr(fd), socket)
	l, err := net.FileListener(f)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	// The listener of package net would have made the queue longer.
	raw, err := l.(*net.UnixListener).SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) { err = unix.Listen(int(fd), 1) }))
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			time.Sleep(time.Millisecond) // it does other things, too
			_, _ = io.Copy(conn, conn)
			_ = conn.Close()
		}
	}()
	return socket
}

func TestManyWhoOpenAConsoleAtOnceHaveItInTurn(t *testing.T) {
	s := &Serial{Socket: queue(t)}
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			conn, err := s.Open(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.ReadFull(conn, make([]byte, 1)) // until another has it
			_ = conn.Close()
		})
	}
	for opened := false; !opened; { // the last one has it until here
		conn, err := s.Open(t.Context())
		require.NoError(t, err)
		_, err = conn.Write([]byte("x"))
		if err == nil {
			_, err = io.ReadFull(conn, make([]byte, 1))
		}
		opened = err == nil
		_ = conn.Close() // another may have ended it
	}
	go func() { // ends those who would wait for ever
		for {
			conn, err := s.Open(t.Context())
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	all.Wait()
}

func TestAPortThatStaysBusyIsAnError(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	require.NoError(t, unix.Bind(fd, &unix.SockaddrUnix{Name: socket}))
	require.NoError(t, unix.Listen(fd, 1))
	ctx, cancel := context.WithCancel(t.Context())
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
		if errors.Is(err, unix.EAGAIN) {
			break
		}
		require.NoError(t, err)
		defer conn.Close()
	}
	time.AfterFunc(20*time.Millisecond, cancel)
	_, err = Connect(ctx, socket)
	require.Error(t, err)
}

func TestAPortThatIsNotThereIsAnError(t *testing.T) {
	_, err := (&Serial{Socket: filepath.Join(t.TempDir(), "nothing")}).Open(t.Context())
	require.ErrorIs(t, err, os.ErrNotExist)
}
