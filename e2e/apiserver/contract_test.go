package apiserver

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/contract"
	"github.com/podvisor/podvisor/vmi/client"
)

// Kinds that are not served yet are served here with all their typed fields.
func TestTheRealAPIServerKeepsTheContractOfTheFake(t *testing.T) {
	s := newSpace(t)
	dir := t.TempDir()
	gen := exec.CommandContext(t.Context(), "go", "run", "./internal/apigen", "-whole", dir)
	gen.Dir = "../.."
	out, err := gen.CombinedOutput()
	require.NoError(t, err, string(out))
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	require.NoError(t, err)
	for _, f := range files {
		crd, err := os.ReadFile(f)
		require.NoError(t, err)
		if said, err := kubectl(t, string(crd), "create", "-f", "-"); err != nil {
			require.Contains(t, said, "AlreadyExists")
		}
	}
	said, err := kubectl(t, "", "wait", "--for=condition=Established", "--timeout=30s", "-f", dir)
	require.NoError(t, err, said)
	require.Equal(t, len(files), strings.Count(said, "condition met"))

	c, err := client.New(world.config)
	require.NoError(t, err)
	contract.Run(t, c, s.name)
}
