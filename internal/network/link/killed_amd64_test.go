package link

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/network/networktest"
	"github.com/podvisor/podvisor/internal/network/nft"
	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
)

// bindVariable names the VMI of [killable] for which a process of this test binary binds
// the network namespace that is its descriptor 3, as virt-handler does.
const bindVariable = "PODVISOR_TEST_BIND"

func TestMain(m *testing.M) {
	name := os.Getenv(bindVariable)
	if name == "" {
		os.Exit(m.Run())
	}
	if err := bind(os.NewFile(3, "namespace"), killable()[name]); err != nil {
		fmt.Fprintln(os.Stderr, "bind", name, err)
		os.Exit(1)
	}
}

func bind(ns *os.File, v *vmi.VirtualMachineInstance) error {
	s, err := Observe(context.Background(), ns)
	if err != nil {
		return err
	}
	cfg, err := network.Plan(network.Input{Instance: v, State: s, Owner: owner, Links: networktest.Links(v)})
	if err != nil {
		return err
	}
	if err := nft.Apply(ns, cfg); err != nil {
		return err
	}
	return Apply(context.Background(), ns, cfg)
}

// onMacvlan is the VMI whose pod has a macvlan link.
const onMacvlan = "bridge on macvlan"

// killable are the VMIs of all golden plans, one with several queues, and [onMacvlan].
func killable() map[string]*vmi.VirtualMachineInstance {
	all := map[string]*vmi.VirtualMachineInstance{}
	for name, b := range bindings {
		all[name] = networktest.Instance(b...)
	}
	queues := networktest.Instance(networktest.Masquerade)
	queues.Spec.Domain.CPU = &vmi.CPU{Cores: 2}
	queues.Spec.Domain.Devices.NetworkInterfaceMultiQueue = new(true)
	all["masquerade with queues"] = queues
	all[onMacvlan] = networktest.Instance(networktest.Bridge)
	return all
}

// Every call is found by running the process: a new one is killed too without being named here.
// One run kills at every eighth call, of the eight VMIs not at the same ones. If sweeps are to be
// whole, it is every call.
func TestABindingConvergesAfterAKillAtAnyCallThatChangesTheNamespace(t *testing.T) {
	testenv.Root(t)
	vmis := killable()
	for i, name := range slices.Sorted(maps.Keys(vmis)) {
		v, first, step := vmis[name], i%8, 8
		if testenv.Long() {
			first, step = 0, 1
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			of := networktest.DualPod
			if name == onMacvlan {
				of = networktest.MacvlanPod
			}
			environment := append(os.Environ(), bindVariable+"="+name)
			whole := podOf(t, v, of)
			cfg := plan(t, whole, v)
			total, killed := runKilled(t, environment, whole, -1)
			require.False(t, killed)
			// A run on a busy host may ask the kernel once more.
			other, killed := runKilled(t, environment, podOf(t, v, of), -1)
			require.False(t, killed)
			total = min(total, other)
			want := namespace(t, whole, cfg)
			again, _ := runKilled(t, environment, whole, -1)
			require.Equal(t, want, namespace(t, whole, cfg), "applying twice changes nothing more")
			t.Logf("%d calls that change something, %d when there is nothing to change", total, again)
			require.Greater(t, total, again)
			for k := first; ; k += step {
				pod := podOf(t, v, of)
				if _, killed := runKilled(t, environment, pod, k); !killed {
					require.Equal(t, want, namespace(t, pod, cfg))
					// If this run asked once more, it was killed there too.
					require.GreaterOrEqual(t, k, total, "every call of a run was one that an earlier run was killed at")
					return
				}
				require.Equal(t, cfg, plan(t, pod, v), "the plan is the same after a kill at call %d", k)
				if (k-first)/step%4 == 0 {
					// The second attempt is killed too.
					runKilled(t, environment, pod, (total-k)/2)
					require.Equal(t, cfg, plan(t, pod, v), "the plan is the same after two kills, the first one at call %d", k)
				}
				require.NoError(t, bind(pod, v))
				require.Equal(t, want, namespace(t, pod, cfg), "after a kill at call %d", k)
			}
		})
	}
}

// namespace is all that is in the namespace: links, settings and rules.
func namespace(t *testing.T, pod *os.File, cfg network.Config) string {
	t.Helper()
	return string(text(t, pod, cfg)) + networktest.Run(t, pod, testenv.Program(t, "nft"), "list", "ruleset")
}
