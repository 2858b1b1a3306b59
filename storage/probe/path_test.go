package probe_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/storage/probe"
)

func TestAFileHasASize(t *testing.T) {
	p := filepath.Join(t.TempDir(), "disk")
	require.NoError(t, os.WriteFile(p, make([]byte, 8192), 0o600))
	got, err := probe.Path(p)
	require.NoError(t, err)
	require.False(t, got.Device)
	require.EqualValues(t, 8192, got.SizeBytes)
}

func TestAFileSystemWithoutDirectIOIsNoFault(t *testing.T) {
	testenv.Root(t)
	for _, tt := range []struct {
		fs   string
		want bool
	}{{"ramfs", false}} {
		dir := t.TempDir()
		require.NoError(t, unix.Mount("none", dir, tt.fs, 0, ""))
		t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, 0)) })
		p := filepath.Join(dir, "disk")
		require.NoError(t, os.WriteFile(p, make([]byte, 4096), 0o600))
		got, err := probe.Path(p)
		require.NoError(t, err)
		require.Equal(t, tt.want, got.DirectIO, tt.fs)
	}
}

func TestWhatIsNoDiskIsRefused(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	require.NoError(t, unix.Mkfifo(fifo, 0o600))
	for _, p := range []string{dir, fifo, "/dev/null", filepath.Join(dir, "missing")} {
		_, err := probe.Path(p)
		require.ErrorContains(t, err, p)
	}
}

func ExamplePath() {
	f, _ := os.CreateTemp("", "disk")
	defer os.Remove(f.Name())
	_ = f.Truncate(1 << 20)
	facts, err := probe.Path(f.Name())
	fmt.Println(facts.Device, facts.SizeBytes, err)
	// Output: false 1048576 <nil>
}
