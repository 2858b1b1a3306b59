package networktest

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/internal/testenv"
)

// Namespace makes a network namespace with a loopback, which exists until the
// test ends.
func Namespace(t testing.TB) *os.File {
	t.Helper()
	testenv.Root(t)
	var ns *os.File
	apart(t, func() (err error) {
		if err = unix.Unshare(unix.CLONE_NEWNET); err == nil {
			ns, err = os.Open(current)
		}
		return err
	})
	t.Cleanup(func() { ns.Close() })
	IP(t, ns, "link set lo up")
	return ns
}

// In calls f on a thread that is in the namespace.
func In(t testing.TB, ns *os.File, f func()) {
	t.Helper()
	apart(t, func() error {
		if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
			return err
		}
		f()
		return nil
	})
}

// current is the namespace of the thread.
const current = "/proc/thread-self/ns/net"

// apart calls f on a thread of its own, which then returns to its namespace.
func apart(t testing.TB, f func() error) {
	t.Helper()
	done := make(chan error)
	go func() {
		err := errors.New("the test failed in the namespace")
		// A failed requirement ends the goroutine, not the test that waits for it.
		defer func() { done <- err }()
		runtime.LockOSThread()
		own, failed := os.Open(current)
		if failed != nil {
			err = failed
			return
		}
		defer own.Close()
		failed = f()
		if err = errors.Join(failed, unix.Setns(int(own.Fd()), unix.CLONE_NEWNET)); err == nil {
			runtime.UnlockOSThread()
		}
	}()
	require.NoError(t, <-done)
}

// IP runs the program ip in the namespace with the words of a line.
func IP(t testing.TB, ns *os.File, line string) string {
	t.Helper()
	return Run(t, ns, append([]string{testenv.Program(t, "ip")}, strings.Fields(line)...)...)
}

// Run runs a program in the namespace, which must succeed, and returns what it
// printed.
func Run(t testing.TB, ns *os.File, args ...string) string {
	t.Helper()
	out, err := Try(t, ns, args...)
	require.NoError(t, err, "%s:\n%s", strings.Join(args, " "), out)
	return out
}

// Try runs a program in the namespace and returns what it printed.
func Try(t testing.TB, ns *os.File, args ...string) (out string, err error) {
	t.Helper()
	In(t, ns, func() {
		var b []byte
		b, err = exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput()
		out = string(b)
	})
	return out, err
}
