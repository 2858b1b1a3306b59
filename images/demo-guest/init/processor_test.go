package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheProcessorsThatTheKernelLeftDownAreBroughtUp(t *testing.T) {
	folder := t.TempDir()
	for _, dir := range []string{"cpu0", "cpu1", "cpu10", "cpuidle"} {
		require.NoError(t, os.Mkdir(filepath.Join(folder, dir), 0o755))
	}
	for _, dir := range []string{"cpu1", "cpu10", "cpuidle"} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, dir, "online"), []byte("0"), 0o644))
	}
	require.NoError(t, bringUpProcessors(folder))
	for dir, want := range map[string]string{"cpu1": "1", "cpu10": "1", "cpuidle": "0"} {
		got, err := os.ReadFile(filepath.Join(folder, dir, "online"))
		require.NoError(t, err)
		require.Equal(t, want, string(got), dir)
	}
	require.NoFileExists(t, filepath.Join(folder, "cpu0", "online"))
}
