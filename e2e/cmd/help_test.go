// Package cmd_test tests what all programs of the project have in common.
package cmd_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// folders are the modules and the folders in them that programs for people are in,
// from this one.
var folders = []struct{ module, pattern string }{
	{"../..", "./cmd/..."},
	{"../..", "./examples/..."},
	{"..", "./cmd/..."},
	{"../../examples/list-vmis", "."},
	{"../../examples/manager", "."},
}

// programs builds all programs and returns their paths.
func programs(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range folders {
		c := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", dir+"/", f.pattern)
		c.Dir, c.Env = f.module, append(os.Environ(), "GOFLAGS=-buildvcs=false -trimpath", "GOWORK=off", "CGO_ENABLED=0")
		out, err := c.CombinedOutput()
		require.NoError(t, err, "%s: %s", f.pattern, out)
	}
	all, err := filepath.Glob(dir + "/*")
	require.NoError(t, err)
	return all
}

// sources counts the packages of programs in the same folders.
func sources(t *testing.T) int {
	t.Helper()
	n := 0
	for _, pattern := range []string{"../../cmd/*/main.go", "../../examples/*/main.go", "*/main.go"} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		n += len(found)
	}
	return n
}

func TestTheHelpOfEveryProgram(t *testing.T) {
	t.Parallel()
	all := programs(t)
	require.Len(t, all, sources(t), "a module with programs is missing in the list")
	for _, path := range all {
		name := filepath.Base(path)
		run := func(t *testing.T, args ...string) (status int, out, errs string) {
			t.Helper()
			var o, e bytes.Buffer
			c := exec.CommandContext(t.Context(), path, args...)
			c.Stdout, c.Stderr = &o, &e
			if err := c.Run(); err != nil {
				require.ErrorAs(t, err, new(*exec.ExitError))
			}
			return c.ProcessState.ExitCode(), o.String(), e.String()
		}
		for _, help := range []string{"--help", "-h"} {
			t.Run(name+" "+help+" is on standard output and succeeds", func(t *testing.T) {
				t.Parallel()
				status, out, errs := run(t, help)
				require.Zero(t, status)
				require.Empty(t, errs)
				require.True(t, strings.HasPrefix(out, "usage: "+name), out)
				require.False(t, strings.HasSuffix(out, "\n\n"), "an empty line at the end: %q", out)
			})
		}
		t.Run(name+" names a wrong flag and the way to the help in one line", func(t *testing.T) {
			t.Parallel()
			status, out, errs := run(t, "--no-such-flag")
			require.Equal(t, 2, status)
			require.Empty(t, out)
			require.Equal(t, name+": flag provided but not defined: -no-such-flag: see "+name+" --help\n", errs)
		})
	}
}
