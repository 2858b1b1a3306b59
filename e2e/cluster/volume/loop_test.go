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

func TestTheDevicesOfAFolderAreGivenBack(t *testing.T) {
	testenv.Root(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "volume")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, os.Truncate(file, 1<<20))
	t.Cleanup(func() { _ = Detach(dir) })
	device, err := exec.CommandContext(t.Context(), "losetup", "--find", "--show", file).Output()
	require.NoError(t, err)
	path := strings.TrimSpace(string(device))

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
