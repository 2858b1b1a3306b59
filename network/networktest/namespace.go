package networktest

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/internal/testenv"
)

// Namespace makes a network namespace with a loopback, which is gone after the
// test.
func Namespace(t testing.TB) *os.File {
	t.Helper()
	testenv.Root(t)
	made := make(chan *os.File, 1)
	errs := make(chan error, 1)
	go func() {
		// The thread ends with the goroutine and is never used again.
		runtime.LockOSThread()
		err := unix.Unshare(unix.CLONE_NEWNET)
		var f *os.File
		if err == nil {
			f, err = os.Open("/proc/thread-self/ns/net")
		}
		errs <- err
		made <- f
	}()
	require.NoError(t, <-errs)
	ns := <-made
	t.Cleanup(func() { ns.Close() })
	IP(t, ns, "link set lo up")
	return ns
}

// In calls f on a thread that is in the namespace.
func In(t testing.TB, ns *os.File, f func()) {
	t.Helper()
	entered := make(chan error)
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET)
		entered <- err
		if err == nil {
			f()
		}
	}()
	require.NoError(t, <-entered)
	<-done
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
