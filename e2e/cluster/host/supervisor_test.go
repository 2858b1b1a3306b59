package host

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/e2e/cluster/plan"
)

// theChildren are those of the test process: two loops would steal from each other.
var theChildren = sync.OnceValue(newChildren)

// supervise runs the programs until the test ends and returns the host's folder.
func supervise(t *testing.T, programs ...plan.Program) string {
	t.Helper()
	dir := t.TempDir()
	s, err := newSupervisor(dir, "m", programs, theChildren(), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	s.hung = 3 * time.Second
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { s.run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
		for _, p := range s.board.status.Programs {
			if p.PID != 0 {
				_ = syscall.Kill(p.PID, syscall.SIGKILL)
			}
		}
	})
	return dir
}

// becomes waits until a program is in a state.
func becomes(t *testing.T, dir, program string, is func(ProgramStatus) bool) ProgramStatus {
	t.Helper()
	var found ProgramStatus
	require.Eventually(t, func() bool {
		status, err := ReadStatus(dir)
		require.NoError(t, err)
		for _, p := range status.Programs {
			if p.Name == program {
				found = p
				return is(p)
			}
		}
		return false
	}, time.Minute, time.Millisecond, "the last state: %+v", &found)
	return found
}

func is(state State) func(ProgramStatus) bool {
	return func(p ProgramStatus) bool { return p.State == state }
}

func TestSupervisor(t *testing.T) {
	t.Run("a program runs, and what it says is in its log", func(t *testing.T) {
		dir := supervise(t, plan.Program{Name: "a", Args: []string{"/bin/sh", "-c", "echo said $WORD; exec sleep 60"}, Env: []string{"WORD=this"}})
		require.NotZero(t, becomes(t, dir, "a", is(Running)).PID)
		require.Eventually(t, func() bool {
			log, err := os.ReadFile(LogPath(dir, "a"))
			return err == nil && string(log) == "said this\n"
		}, time.Minute, time.Millisecond)
	})
	t.Run("a program that was killed is started again", func(t *testing.T) {
		dir := supervise(t, plan.Program{Name: "a", Args: []string{"/bin/sleep", "60"}})
		first := becomes(t, dir, "a", is(Running))
		require.NoError(t, syscall.Kill(first.PID, syscall.SIGKILL))
		require.Equal(t, "killed by signal killed", becomes(t, dir, "a", is(Broken)).Reason)
		again := becomes(t, dir, "a", is(Running))
		require.NotEqual(t, first.PID, again.PID)
		require.Equal(t, 1, again.Restarts)
	})
	t.Run("a program that ends is broken, however it ends", func(t *testing.T) {
		dir := supervise(t, plan.Program{Name: "a", Args: []string{"/bin/sh", "-c", "exit 0"}})
		require.Equal(t, "exit status 0", becomes(t, dir, "a", is(Broken)).Reason)
	})
	t.Run("a program that cannot be started is broken", func(t *testing.T) {
		dir := supervise(t, plan.Program{Name: "a", Args: []string{"/no/such/program"}})
		require.Contains(t, becomes(t, dir, "a", is(Broken)).Reason, "no such file")
	})
	t.Run("a program that runs once is repeated until it ends well", func(t *testing.T) {
		mark := filepath.Join(t.TempDir(), "mark")
		dir := supervise(t, plan.Program{Name: "a", Once: true, Args: []string{"/bin/sh", "-c", "test -e " + mark + " || { : > " + mark + "; exit 3; }"}})
		done := becomes(t, dir, "a", is(Done))
		require.Equal(t, 1, done.Restarts)
		require.Zero(t, done.PID)
	})
	t.Run("a program waits for its conditions and says for which", func(t *testing.T) {
		gate := filepath.Join(t.TempDir(), "gate")
		dir := supervise(t,
			plan.Program{Name: "a", Once: true, Args: []string{"/bin/sh", "-c", "test -e " + gate}},
			plan.Program{Name: "b", Args: []string{"/bin/sleep", "60"}, After: []string{"done:a"}})
		becomes(t, dir, "b", func(p ProgramStatus) bool { return p.State == Waiting && p.Reason == "done:a" })
		require.NoError(t, os.WriteFile(gate, nil, 0o600))
		becomes(t, dir, "b", is(Running))
	})
	t.Run("a program runs when it does its work, not before", func(t *testing.T) {
		socket := filepath.Join(t.TempDir(), "s")
		dir := supervise(t, plan.Program{Name: "a", Args: []string{"/bin/sleep", "60"}, Ready: []string{"unix:" + socket}})
		becomes(t, dir, "a", is(Starting))
		l, err := net.Listen("unix", socket)
		require.NoError(t, err)
		becomes(t, dir, "a", is(Running))
		require.NoError(t, l.Close())
		hung := becomes(t, dir, "a", is(Starting))
		require.Equal(t, "unix:"+socket, hung.Reason, "it runs, and does not work any more")
		require.Equal(t, "killed by signal killed", becomes(t, dir, "a", is(Broken)).Reason, "for too long")
	})
	t.Run("a host that has not started has an empty status", func(t *testing.T) {
		status, err := ReadStatus(t.TempDir())
		require.NoError(t, err)
		require.Empty(t, status)
	})
}

func TestCondition(t *testing.T) {
	good := true
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !good {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer server.Close()
	s := &supervisor{board: &board{}}
	holds, err := s.check(condition("http:" + server.URL + "/healthz"))
	require.NoError(t, err)
	require.True(t, holds())
	good = false
	require.False(t, holds(), "an answer that is not 200")
	server.Close()
	require.False(t, holds(), "no answer")

	for _, wrong := range []condition{"", "what:ever", "https:/no/such/file:https://x"} {
		_, err := s.check(wrong)
		require.Error(t, err, wrong)
	}
}

func TestForward(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(r.URL.Path))
	}))
	defer server.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	go forward(l, server.Listener.Addr().String(), slog.New(slog.DiscardHandler))
	resp, err := http.Get("http://" + l.Addr().String() + "/through")
	require.NoError(t, err)
	defer resp.Body.Close()
	body := make([]byte, 8)
	_, err = resp.Body.Read(body)
	require.True(t, err == nil || err.Error() == "EOF", err)
	require.Equal(t, "/through", string(body))
}
