package control

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/internal/transport"
	"github.com/podvisor/podvisor/launcher/protocol"
)

func TestAttackByStatesThatAreTooLarge(t *testing.T) {
	t.Parallel()
	for name, state := range map[string]string{
		"many disks":        `{"phase":"Running","disks":[{}` + strings.Repeat(",{}", transport.MaxValues) + `]}`,
		"many lists":        `{"phase":"Running","x":` + strings.Repeat("[", transport.MaxValues+1) + strings.Repeat("]", transport.MaxValues+1) + `}`,
		"a long text":       `{"phase":"Running","machine":"` + strings.Repeat("a", maxState) + `"}`,
		"no end":            `{"phase":"Running","machine":"` + strings.Repeat("a", 100*maxState),
		"a number too high": `{"phase":"Running","reboots":1e999999999}`,
	} {
		t.Run(name, func(t *testing.T) {
			c := handling(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, state+"\n") }))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := c.State(t.Context())
			require.Error(t, err)
			require.Less(t, len(err.Error()), 2*transport.MaxText)
			var faults int
			for _, err := range c.Watch(t.Context()) {
				require.Error(t, err)
				require.Less(t, len(err.Error()), 2*transport.MaxText)
				faults++
			}
			require.NotZero(t, faults)
			runtime.ReadMemStats(&after)
			t.Logf("%d KiB were allocated", (after.TotalAlloc-before.TotalAlloc)>>10)
		})
	}
}

func TestAttackByStatesWithoutEnd(t *testing.T) {
	t.Parallel()
	c := handling(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for i := 0; r.Context().Err() == nil; i++ {
			if _, err := fmt.Fprintf(w, "{\"phase\":\"Running\",\"reboots\":%d}\n", i); err != nil {
				return
			}
			if i%100 == 99 {
				return // another connection
			}
		}
	}))
	states, began := 0, time.Now()
	over := func() bool {
		took := time.Since(began)
		return took > 2*time.Second && states > 100 || took > time.Minute
	}
	for !over() {
		for _, err := range c.Watch(t.Context()) {
			if err == nil {
				states++
			}
			if over() {
				break
			}
		}
	}
	t.Logf("%d states in %s", states, time.Since(began))
	require.LessOrEqual(t, float64(states), statesAtOnce/leastLine+time.Since(began).Seconds()*statesPerSecond/leastLine+1)
	require.Greater(t, states, 100)
}

func TestTheLargestStateThatALauncherSendsIsRead(t *testing.T) {
	t.Parallel()
	want := protocol.State{Phase: protocol.Running, Machine: "pc-q35-9.2"}
	for i := range 512 {
		want.Disks = append(want.Disks, protocol.Disk{Name: fmt.Sprintf("%063d", i), Target: fmt.Sprintf("vd%04d", i), SizeBytes: 1 << 50})
	}
	server, c := serve(t, ServerConfig{})
	server.Publish(want)
	got, err := c.State(t.Context())
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// sending returns a client of a peer that answers with the bytes and the descriptor, and
// then gives the connection to then.
func sending(t *testing.T, answer []byte, fd int, then func(net.Conn)) *Client {
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
			_, _ = conn.Read(make([]byte, 4096))
			_, _, _ = conn.(*net.UnixConn).WriteMsgUnix(answer, unix.UnixRights(fd), nil)
			then(conn)
		}
	}()
	return NewClient(dialTo(path))
}

// same are the descriptors of this process that are the same file as fd, which the kernel
// gives a number of its own.
func same(t *testing.T, fd int) (all []string) {
	t.Helper()
	want, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	require.NoError(t, err)
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, e := range entries {
		if got, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && got == want && e.Name() != strconv.Itoa(fd) {
			all = append(all, e.Name())
		}
	}
	return all
}

// polled are the descriptors of this process for which a poller waits.
func polled(t *testing.T) (all []string) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fdinfo")
	require.NoError(t, err)
	for _, e := range entries {
		info, _ := os.ReadFile("/proc/self/fdinfo/" + e.Name()) // it may be closed by now
		for _, line := range strings.Split(string(info), "\n") {
			if rest, ok := strings.CutPrefix(line, "tfd:"); ok {
				all = append(all, strings.Fields(rest)[0])
			}
		}
	}
	return all
}

// What does not block and comes to the poller of Go's runtime wakes the process at the will
// of its sender, and a poller in the poller stalls it.
func TestAttackAForeignDescriptorDoesNotComeToThePoller(t *testing.T) {
	var pipe [2]int
	require.NoError(t, unix.Pipe2(pipe[:], unix.O_NONBLOCK|unix.O_CLOEXEC))
	defer func() { _, _ = unix.Close(pipe[0]), unix.Close(pipe[1]) }()
	granted := transport.Granted(protocol.StreamUpgrade)
	for name, answer := range map[string][]byte{"with a head": granted, "without a complete head": granted[:20]} {
		t.Run(name, func(t *testing.T) {
			closed := make(chan struct{})
			c := sending(t, answer, pipe[0], func(conn net.Conn) {
				_, _ = io.Copy(io.Discard, conn)
				close(closed)
			})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan error, 1)
			go func() { _, err := c.Namespace(ctx); done <- err }()
			held := name == "without a complete head"
			if held {
				require.Eventually(t, func() bool { return len(same(t, pipe[0])) > 1 }, time.Minute, time.Millisecond, "it has come")
			}
			for range 100 {
				for _, n := range same(t, pipe[0]) {
					require.NotContains(t, polled(t), n)
				}
				time.Sleep(100 * time.Microsecond)
			}
			if held {
				cancel()
			}
			require.Error(t, <-done)
			<-closed
			require.Eventually(t, func() bool { return len(same(t, pipe[0])) == 1 }, time.Minute, time.Millisecond, "it is closed: the writing end alone is left")
		})
	}
}

// The closing of a socket waits for its peer as long as its maker chose.
func TestAttackADescriptorWhoseClosingWaitsHoldsNoOneUp(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	require.NoError(t, unix.Connect(fd, &unix.SockaddrInet4{Port: l.Addr().(*net.TCPAddr).Port, Addr: [4]byte{127, 0, 0, 1}}))
	far, err := l.Accept()
	require.NoError(t, err)
	defer far.Close() // and the closing ends
	require.NoError(t, unix.SetNonblock(fd, true))
	for err == nil {
		_, err = unix.Write(fd, make([]byte, 64<<10))
	}
	require.ErrorIs(t, err, unix.EAGAIN)
	require.NoError(t, unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1, Linger: 3600}))

	// Its sender has no more of it when the client closes it.
	sent := make(chan struct{})
	path := filepath.Join(t.TempDir(), "s")
	u, err := net.Listen("unix", path)
	require.NoError(t, err)
	defer u.Close()
	go func() {
		conn, err := u.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = conn.Read(make([]byte, 4096))
		head := transport.Granted(protocol.StreamUpgrade)
		_, _, _ = conn.(*net.UnixConn).WriteMsgUnix(head[:20], unix.UnixRights(fd), nil)
		_ = unix.Dup3(unix.Stderr, fd, unix.O_CLOEXEC) // which closes it, and does not wait for the last
		_, _ = conn.Write(head[20:])
		close(sent)
	}()
	c := NewClient(dialTo(path))
	err = ends(t, "namespace", func() error { _, err := c.Namespace(t.Context()); return err })
	<-sent
	require.ErrorContains(t, err, "no network namespace")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err = c.Namespace(ctx)
	require.ErrorIs(t, err, errClosing, "one such descriptor holds one thread")
}
