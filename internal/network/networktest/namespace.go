package networktest

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/internal/testenv"
)

// Namespace makes a network namespace with a loopback, which exists until the
// test ends, however it ends: it is mounted nowhere.
func Namespace(t testing.TB) *os.File {
	t.Helper()
	testenv.Root(t)
	n, err := ns.TempNetNS()
	testenv.Kernel(t, err, "network namespaces, and the capability to make them")
	require.NoError(t, err)
	f, err := os.Open(descriptor(n.Fd()))
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	require.NoError(t, n.Close())
	IP(t, f, "link set lo up")
	return f
}

// In calls f on a thread that is in the namespace.
func In(t testing.TB, file *os.File, f func()) {
	t.Helper()
	n, err := ns.GetNS(descriptor(file.Fd()))
	require.NoError(t, err)
	defer n.Close()
	// A failed requirement ends the goroutine of f, not the test that waits for it.
	returned := false
	require.NoError(t, n.Do(func(ns.NetNS) error {
		f()
		returned = true
		return nil
	}))
	require.True(t, returned, "the test failed in the namespace")
}

func descriptor(fd uintptr) string { return fmt.Sprintf("/proc/thread-self/fd/%d", fd) }

// Read reads a file as it is in the namespace, such as a setting of the kernel.
func Read(t testing.TB, ns *os.File, path string) string {
	t.Helper()
	var b []byte
	var err error
	In(t, ns, func() { b, err = os.ReadFile(path) })
	require.NoError(t, err)
	return strings.TrimSpace(string(b))
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
	if err != nil {
		testenv.Kernel(t, refused(out), strings.Join(args, " "))
	}
	require.NoError(t, err, "%s:\n%s", strings.Join(args, " "), out)
	return out
}

// refused is why the kernel has not what a program asked it for, as the program says it, or
// nil.
func refused(out string) error {
	for says, why := range map[string]error{
		"Operation not supported": unix.EOPNOTSUPP, "Not supported": unix.EOPNOTSUPP, "Unknown device type": unix.EOPNOTSUPP,
		"Protocol not supported": unix.EPROTONOSUPPORT, "Operation not permitted": unix.EPERM,
	} {
		if strings.Contains(out, says) {
			return why
		}
	}
	return nil
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
