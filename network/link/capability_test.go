package link

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/network/networktest"
	"github.com/podvisor/podvisor/network/nft"
)

// inherited says to the child of a test that the pod's namespace is file 3.
const inherited = "PODVISOR_TEST_NAMESPACE"

// TestTwoCapabilitiesAreEnough plumbs a pod from a process like the handler: root
// with SYS_ADMIN and NET_ADMIN alone, and a read-only /proc/sys.
func TestTwoCapabilitiesAreEnough(t *testing.T) {
	if name := os.Getenv(inherited); name != "" {
		plumbInherited(t, name)
		return
	}
	for name := range bindings {
		for where, pod := range map[string]func(testing.TB) (*os.File, *os.File){
			"":                     networktest.DualPod,
			" in a user namespace": func(t testing.TB) (*os.File, *os.File) { return networktest.UserPod(t, 1<<20) },
		} {
			t.Run(name+where, func(t *testing.T) {
				pod, _ := pod(t)
				plumbSandboxed(t, pod, name)
				cfg := plan(t, pod, machine(bindings[name]))
				require.Zero(t, some(t, pod, cfg, 0), "nothing was left out")
			})
		}
	}
}

// plumbSandboxed plumbs the pod in a child process.
func plumbSandboxed(t *testing.T, pod *os.File, name string) {
	t.Helper()
	setpriv, unshare := testenv.Program(t, "setpriv"), testenv.Program(t, "unshare")
	const sandbox = "mount -o bind,ro /proc/sys /proc/sys && exec %s --bounding-set=-all,+sys_admin,+net_admin --inh-caps=-all --no-new-privs %s -test.run='^TestTwoCapabilitiesAreEnough$' -test.v"
	cmd := exec.CommandContext(t.Context(), unshare, "--mount", "sh", "-c", fmt.Sprintf(sandbox, setpriv, os.Args[0]))
	cmd.Env = append(os.Environ(), inherited+"="+name)
	cmd.ExtraFiles = []*os.File{pod}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "PASS")
}

func plumbInherited(t *testing.T, name string) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	require.Contains(t, string(status), "CapEff:\t0000000000201000\n", "SYS_ADMIN and NET_ADMIN")
	require.Error(t, os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0), "this is no container")
	pod := os.NewFile(3, "pod")
	cfg := plan(t, pod, machine(bindings[name]))
	require.NoError(t, Check(pod))
	require.NoError(t, Apply(pod, cfg))
	require.NoError(t, nft.Apply(pod, cfg.NAT))
}
