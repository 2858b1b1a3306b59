package e2e

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/vmi"
)

// pullCables takes the links of guests down and up again by the templates of VMs, which
// adopt the VMIs first. The guests keep their addresses.
// cut is after how long a guest that does not answer is taken to be unreachable.
const cut = 30 * time.Second

func pullCables(s space, e ends) {
	for _, g := range []end{e.far, e.bridged} {
		before := s.awaitPhase(g.name, vmi.PhaseRunning)
		adopted := before.DeepCopy()
		adopted.Labels = vmi.UserLabels(before.Labels)
		s.applyVM(vmi.RunAlways, adopted)
		for _, state := range []vmi.InterfaceState{vmi.InterfaceDown, vmi.InterfaceUp} {
			s.kubectl("patch", "vm", g.name, "--type=json", "-p", fmt.Sprintf(`[{"op":"add","path":"/spec/template/spec/domain/devices/interfaces/0/state","value":%q}]`, state))
			eventually(s.t, long, func() error {
				if is := s.awaitPhase(g.name, vmi.PhaseRunning).Status.Interfaces[0].LinkState; is != string(state) {
					return fmt.Errorf("the link of %s is %s", g.name, is)
				}
				if _, err := g.run(cut, "true"); (err == nil) != (state == vmi.InterfaceUp) {
					return errors.Join(fmt.Errorf("%s, whose link is %s, answers wrongly", g.name, state), err)
				}
				return nil
			})
		}
		require.NotEqual(s.t, "0", strings.TrimSpace(g.must("cat", "/sys/class/net/eth0/carrier_down_count")), "the guest saw it")
		g.reaches(e.two)
		after := s.awaitPhase(g.name, vmi.PhaseRunning)
		require.Equal(s.t, before.UID, after.UID)
		require.Equal(s.t, before.Status.Interfaces[0].IP, after.Status.Interfaces[0].IP)
	}
}
