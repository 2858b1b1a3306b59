// Package testenv states what a test needs of the host that it runs on.
//
// A test that needs root or a program is skipped where that is missing, so that
// the tests run on every host. Where the environment variable CI is
// "true" everything is expected to be there, and what is missing is a failure:
// a skipped test must not count as one that passed.
package testenv

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// capabilities are what tests need, and root lacks in a container: their numbers in
// capabilities(7).
var capabilities = map[string]uint{
	"CAP_CHOWN": 0, "CAP_DAC_OVERRIDE": 1, "CAP_SETGID": 6, "CAP_SETUID": 7, "CAP_NET_ADMIN": 12, "CAP_SYS_PTRACE": 19, "CAP_SYS_ADMIN": 21,
	"CAP_MKNOD": 27,
}

// Root needs the test to run as root, with the capabilities of root.
func Root(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		missing(t, "needs root")
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	if lacks := lacking(string(status)); len(lacks) > 0 {
		missing(t, "needs root with "+strings.Join(lacks, ", ")+", as it is outside of containers")
	}
}

// lacking are the capabilities that a process with this status does not have.
func lacking(status string) []string {
	_, rest, _ := strings.Cut(status, "\nCapEff:")
	line, _, _ := strings.Cut(rest, "\n")
	effective, _ := strconv.ParseUint(strings.TrimSpace(line), 16, 64)
	var out []string
	for name, n := range capabilities {
		if effective>>n&1 == 0 {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// Program needs an executable and returns its path. An absolute name is looked
// for just there.
func Program(t testing.TB, name string) string {
	t.Helper()
	p, err := exec.LookPath(name)
	if err != nil {
		missing(t, "needs the program "+name+": "+err.Error())
	}
	return p
}

// File needs a file or device and returns its path.
func File(t testing.TB, path string) string {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		missing(t, "needs "+err.Error())
	}
	return path
}

// Device needs a device that this process may read and write, and returns its path.
func Device(t testing.TB, path string) string {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		missing(t, "needs "+err.Error())
	}
	_ = f.Close()
	return path
}

// Kernel ends the test if the error says that the kernel lacks something, as a module that is
// not loaded, and what it is for.
func Kernel(t testing.TB, err error, what string) {
	t.Helper()
	for _, lacks := range []error{syscall.EOPNOTSUPP, syscall.EAFNOSUPPORT, syscall.EPROTONOSUPPORT, syscall.ENODEV, syscall.ENOSYS, syscall.EPERM} {
		if errors.Is(err, lacks) {
			missing(t, "needs a kernel with "+what+": "+err.Error())
		}
	}
}

// missing ends the test: as failed under CI, as skipped elsewhere.
func missing(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(why + "; under CI it must be there")
	}
	t.Skip(why)
}
