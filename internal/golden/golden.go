// Package golden compares what a test made with a file that people have read.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

// Equal compares got with the file at path, which is relative to the test's
// package. With the flag -update it writes the file.
func Equal(t testing.TB, path string, got []byte) {
	t.Helper()
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, got, 0o644))
		return
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run the test with -update to make the file")
	require.Equal(t, string(want), string(got), "run the test with -update and read the difference if the change is wanted")
}
