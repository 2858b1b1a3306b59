package link

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/network/networktest"
	"github.com/podvisor/podvisor/internal/network/nft"
	"github.com/podvisor/podvisor/internal/testenv"
)

// inherited is set for the child of a test: the pod's namespace is file 3.
const inherited = "PODVISOR_TEST_NAMESPACE"

// TestTwoCapabilitiesAreEnough binds the interfaces of a VMI in a process like the
// handler: root with SYS_ADMIN and NET_ADMIN alone, and a read-only /proc/sys.
func TestTwoCapabilitiesAreEnough(t *testing.T) {
	if name := os.Getenv(inherited); name != "" {
		bindInherited(t, name)
		return
	}
	for _, name := range []string{"masquerade", "bridge", "masquerade-bridge"} {
		for where, make := range map[string]func(testing.TB) (pod, node, launcher *os.File){
			"": func(t testing.TB) (*os.File, *os.File, *os.File) {
				pod, node := networktest.DualPod(t)
				return pod, node, networktest.Process(t, os.Getpid())
			},
			" in a user namespace": func(t testing.TB) (*os.File, *os.File, *os.File) { return networktest.UserPod(t, 1<<20) },
		} {
			t.Run(name+where, func(t *testing.T) {
				v := networktest.Instance(bindings[name]...)
				var launcher *os.File
				pod := podOf(t, v, func(t testing.TB) (pod, node *os.File) {
					pod, node, launcher = make(t)
					return pod, node
				})
				bindSandboxed(t, pod, launcher, name)
				cfg := plan(t, pod, v)
				require.Zero(t, some(t, pod, cfg, 0), "no step is left")
			})
		}
	}
}

// bindSandboxed binds the interfaces in a child process, which does not see the launcher.
func bindSandboxed(t *testing.T, pod, launcher *os.File, name string) {
	t.Helper()
	setpriv, unshare := testenv.Program(t, "setpriv"), testenv.Program(t, "unshare")
	const sandbox = "mount -o bind,ro /proc/sys /proc/sys && exec %s --bounding-set=-all,+sys_admin,+net_admin --inh-caps=-all --no-new-privs %s -test.run='^TestTwoCapabilitiesAreEnough$' -test.v"
	cmd := exec.CommandContext(t.Context(), unshare, "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", fmt.Sprintf(sandbox, setpriv, os.Args[0]))
	cmd.Env = append(os.Environ(), inherited+"="+name)
	cmd.ExtraFiles = []*os.File{pod, launcher}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "PASS")
}

func bindInherited(t *testing.T, name string) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	require.Contains(t, string(status), "CapEff:\t0000000000201000\n", "SYS_ADMIN and NET_ADMIN")
	require.Error(t, os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0), "/proc/sys must be read-only")
	pod, launcher := os.NewFile(3, "pod"), os.NewFile(4, "launcher")
	cfg := plan(t, pod, networktest.Instance(bindings[name]...))
	require.NoError(t, Check(pod, launcher))
	require.NoError(t, nft.Apply(pod, cfg))
	require.NoError(t, Apply(t.Context(), pod, cfg))
	require.NoError(t, Announce(t.Context(), pod, cfg, nil))
	left := cfg
	left.NAT = nil
	require.NoError(t, nft.Apply(pod, left))
	require.NoError(t, Reset(t.Context(), pod, cfg))
}
