package image

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestACopyOfAnEmptyFlashTakesNoSpace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	content := make([]byte, 8<<20+100)
	copy(content[3<<20:], "variables")
	content[len(content)-1] = 1
	from, to := filepath.Join(dir, "template"), filepath.Join(dir, "variables")
	require.NoError(t, os.WriteFile(from, content, 0o600))
	require.NoError(t, CopyOnce(from, to))
	back, err := os.ReadFile(to)
	require.NoError(t, err)
	require.Equal(t, content, back)
	var s unix.Stat_t
	require.NoError(t, unix.Stat(to, &s))
	require.LessOrEqual(t, s.Blocks*512, int64(1<<20))

	require.NoError(t, os.WriteFile(from, make([]byte, 1<<20), 0o600))
	require.NoError(t, os.Remove(to))
	require.NoError(t, CopyOnce(from, to))
	info, err := os.Stat(to)
	require.NoError(t, err)
	require.Equal(t, int64(1<<20), info.Size(), "it ends with a hole")
}
