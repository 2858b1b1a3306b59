package apiserver

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/podvisor/podvisor/internal/contract"
	"github.com/podvisor/podvisor/vmi/client"
)

// All kinds are served here with all their typed fields, and without the policies of
// Podvisor, which the fake does not have.
func TestTheRealAPIServerKeepsTheContractOfTheFake(t *testing.T) {
	t.Parallel()
	b := newFresh(t, "contract")
	dir := t.TempDir()
	gen := exec.CommandContext(t.Context(), "go", "run", "./internal/apigen", "-whole", dir)
	gen.Dir = "../.."
	out, err := gen.CombinedOutput()
	require.NoError(t, err, string(out))
	said, err := b.kubectl("apply", "--server-side", "-f", dir)
	require.NoError(t, err, said)
	said, err = b.kubectl("wait", "--for=condition=Established", "--timeout=30s", "-f", dir)
	require.NoError(t, err, said)

	cfg, err := clientcmd.BuildConfigFromFlags("", b.cluster.Kubeconfig)
	require.NoError(t, err)
	cfg.QPS, cfg.Burst = 500, 1000
	c, err := client.New(cfg)
	require.NoError(t, err)
	contract.Run(t, c, "default")
}
