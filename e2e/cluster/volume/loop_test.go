package volume

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/testenv"
)

func TestADeviceIsOneOfItsFileAndIsGivenBack(t *testing.T) {
	testenv.Root(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "volume")
	path, err := attach(file, 1<<20)
	require.NoError(t, err)
	t.Cleanup(func() { _ = Detach(dir) })
	again, err := attach(file, 1<<20)
	require.NoError(t, err)
	require.Equal(t, path, again, "after a kill")
	size, err := os.ReadFile(filepath.Join("/sys/block", filepath.Base(path), "size"))
	require.NoError(t, err)
	require.Equal(t, "2048", strings.TrimSpace(string(size)), "sectors")

	out, err := exec.CommandContext(t.Context(), "losetup", "--find", "--show", path).CombinedOutput()
	require.NoError(t, err, "%s", out) // as the kubelet holds a device
	require.NoError(t, Detach(filepath.Join(dir, "vol")), "another file")
	require.Contains(t, backing(t), file)

	require.NoError(t, Detach(dir))
	require.NotContains(t, backing(t), file)
	require.NotContains(t, backing(t), path)
}

// backing are what loop devices show.
func backing(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "losetup", "--list", "--noheadings", "--output", "BACK-FILE").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}
