// Package testenv states what a test needs of the host that it runs on.
//
// A test that needs root or a program is skipped where that is missing, so that
// the tests run on every host. Where the environment variable CI is
// "true" everything is expected to be there, and what is missing is a failure:
// a skipped test must not count as one that passed.
package testenv

import (
	"os"
	"os/exec"
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

// missing ends the test: as failed under CI, as skipped elsewhere.
func missing(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(why + "; under CI it must be there")
	}
	t.Skip(why)
}
