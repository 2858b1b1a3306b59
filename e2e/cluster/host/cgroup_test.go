package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/testenv"
)

func TestCgroups(t *testing.T) {
	testenv.Root(t)
	parent := fmt.Sprintf("podvisor-test-%d", os.Getpid())
	t.Cleanup(func() { require.NoError(t, RemoveCgroups(parent)) })
	group := filepath.Join(parent, "n1")
	require.NoError(t, makeCgroups(group))
	require.NoError(t, makeCgroups(group), "what is there already is fine")

	all, err := hierarchies()
	require.NoError(t, err)
	weighed := false
	for _, h := range all {
		require.DirExists(t, filepath.Join(h.dir, group))
		if cpus, err := os.ReadFile(filepath.Join(h.dir, group, "cpuset.cpus")); err == nil && !h.unified {
			require.NotEmpty(t, cpus, "a group without processors takes no process")
		}
		for name, want := range map[string]string{"cpu.shares": "8192", "cpu.weight": "800"} {
			if weight, err := os.ReadFile(filepath.Join(h.dir, parent, name)); err == nil {
				require.Equal(t, want, strings.TrimSpace(string(weight)))
				weighed = true
			}
		}
		require.NoError(t, os.Mkdir(filepath.Join(h.dir, group, "pod"), 0o755))
	}
	require.True(t, weighed)
	require.NoError(t, RemoveCgroups(parent))
	for _, h := range all {
		require.NoDirExists(t, filepath.Join(h.dir, parent))
	}
	require.NoError(t, RemoveCgroups(parent), "what is gone already is fine")
}
