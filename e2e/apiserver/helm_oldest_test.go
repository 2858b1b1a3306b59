//go:build release

package apiserver

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/e2e/toolchain"
	"github.com/podvisor/podvisor/internal/testenv"
)

func TestHelmInstallsUpgradesRollsBackAndUninstallsOnTheOldestKubernetes(t *testing.T) {
	testenv.Root(t)
	program, err := toolchain.OldestAPIServer(t.Context(), toolchain.Config{Out: os.Stdout})
	require.NoError(t, err)
	r := newReleased(t, "oldest", program)
	v, err := r.kube.Discovery().ServerVersion()
	require.NoError(t, err)
	require.Equal(t, "1.32", v.Major+"."+v.Minor)
	helmKeepsVMs(r)
}
