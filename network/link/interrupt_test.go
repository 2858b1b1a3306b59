package link

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/network/networktest"
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
		have, err := observe(h)
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

func TestApplyAfterAnInterruption(t *testing.T) {
	for name, b := range bindings {
		t.Run(name, func(t *testing.T) {
			whole, _ := networktest.DualPod(t)
			cfg := plan(t, whole, machine(b))
			total := some(t, whole, cfg, 1000)
			require.Zero(t, some(t, whole, cfg, 0), "nothing is left to do")
			want := string(text(t, whole, cfg))
			for n := range total {
				t.Run(fmt.Sprintf("after step %d", n), func(t *testing.T) {
					pod, _ := networktest.DualPod(t)
					some(t, pod, plan(t, pod, machine(b)), n)
					again := plan(t, pod, machine(b))
					require.Equal(t, cfg, again, "the plan is the same")
					// The second attempt is interrupted too.
					some(t, pod, again, (total-n)/2)
					require.NoError(t, Apply(pod, plan(t, pod, machine(b))))
					require.Equal(t, want, string(text(t, pod, cfg)))
				})
			}
		})
	}
}
