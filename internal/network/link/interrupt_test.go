package link

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/internal/network/networktest"
	"github.com/podvisor/podvisor/internal/network/nft"
	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/network"
)

// some takes the first n steps of Apply, as a process would that is killed then.
// It returns how many there are.
func some(t *testing.T, ns *os.File, cfg network.Config, n int) int {
	t.Helper()
	total := 0
	require.NoError(t, within(ns, func() error {
		h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
		if err != nil {
			return err
		}
		defer h.Close()
		have, err := observe(t.Context())
		if err != nil {
			return err
		}
		todo, err := steps(have, sysctls(cfg), cfg)
		total = len(todo)
		a := actor{h: h}
		for _, s := range todo[:min(n, total)] {
			if err := a.act(s); err != nil {
				return fmt.Errorf("%T%v: %w", s, s, err)
			}
		}
		return err
	}))
	return total
}

// A process that ends between the rules and the links leaves the rules, which name
// links that are not there, and the next one continues.
func TestTheRulesComeBeforeTheLinks(t *testing.T) {
	for _, name := range []string{"masquerade", "bridge", "masquerade-bridge"} {
		t.Run(name, func(t *testing.T) {
			v := networktest.Instance(bindings[name]...)
			pod := podOf(t, v, networktest.DualPod)
			cfg := plan(t, pod, v)
			require.NoError(t, nft.Apply(pod, cfg))
			ruleset := func() string { return networktest.Run(t, pod, testenv.Program(t, "nft"), "list", "ruleset") }
			before := ruleset()
			require.Contains(t, before, `iifname "tap0" goto tap0`)
			for n := range some(t, pod, cfg, 0) {
				require.Equal(t, cfg, plan(t, pod, v), "the plan is the same after step %d", n)
				some(t, pod, cfg, 1)
				require.NoError(t, nft.Apply(pod, plan(t, pod, v)))
				require.Equal(t, before, ruleset())
			}
			require.Zero(t, some(t, pod, cfg, 0), "no step is left")
		})
	}
}

// Releases before several interfaces gave the routes no metric.
func TestRoutesThatAnEarlierReleaseRememberedAreKept(t *testing.T) {
	v := networktest.Instance(networktest.Bridge)
	pod := podOf(t, v, networktest.Pod)
	cfg := plan(t, pod, v)
	require.NoError(t, Apply(t.Context(), pod, cfg))
	want := string(text(t, pod, cfg))
	table := fmt.Sprintf(" table %d ", network.RememberTable)
	networktest.IP(t, pod, "route flush"+table)
	networktest.IP(t, pod, "route add 10.244.0.0/24 dev k6t-eth0 scope link"+table)
	networktest.IP(t, pod, "route add default via 10.244.0.1 dev k6t-eth0 onlink"+table)
	require.Equal(t, want, string(text(t, pod, cfg)))
	require.Equal(t, cfg, plan(t, pod, v))
	require.Zero(t, some(t, pod, cfg, 0), "no step is left")

	cfg.Links[0].Remember = nil
	require.NoError(t, Apply(t.Context(), pod, cfg))
	require.NotContains(t, string(text(t, pod, cfg)), "remembered route")
}

func TestAFailedStepNamesTheInterface(t *testing.T) {
	v := networktest.Instance(networktest.Masquerade, networktest.Bridge)
	pod := podOf(t, v, networktest.Pod)
	cfg := plan(t, pod, v)
	for n, l := range cfg.Links {
		if l.Interface == "lan1" && l.Kind == network.Tap {
			cfg.Links[n].MTU = 7
		}
	}
	err := Apply(t.Context(), pod, cfg)
	require.ErrorIs(t, err, unix.EINVAL)
	require.ErrorContains(t, err, "bind interface lan1: link tapdbbba150db6: set MTU: ")
}

// unknown is a step that no actor takes.
type unknown struct{}

func (unknown) step() {}

func TestAnUnknownStepIsAnError(t *testing.T) {
	t.Parallel()
	require.EqualError(t, (&actor{}).act(unknown{}), "unknown step link.unknown")
}
