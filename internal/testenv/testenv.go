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
	"syscall"
	"testing"
)

// Root needs the test to run as root.
func Root(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		missing(t, "needs root")
	}
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
