package supervisor

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/launcher"
	"github.com/podvisor/podvisor/launcher/domain"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
)

func TestTheLinkOfAGuestThatRunsIsSwitched(t *testing.T) {
	t.Parallel()
	p := newPod(t, bootable(), "TAP=tap0")
	put := func(generation int64, state vmi.InterfaceState) {
		v := instance()
		v.Spec.Domain.Devices.Interfaces = []vmi.Interface{{Name: "default", State: state, InterfaceBinding: vmi.InterfaceBinding{Bridge: &vmi.InterfaceBridge{}}}}
		v.Spec.Networks = []vmi.Network{{Name: "default", NetworkSource: vmi.NetworkSource{Pod: &vmi.PodNetwork{}}}}
		d := protocol.Desired{Generation: generation, Instance: v, Interfaces: []network.Attachment{{Name: "default", Tap: "tap0", MAC: "02:00:00:00:00:01"}}}
		require.NoError(t, p.client.Put(t.Context(), d))
	}
	cable := func() string {
		return run(t, "virsh", "--quiet", "--connect", "qemu:///session?socket="+p.path("kubevirt-private/libvirt/run/libvirt/libvirt-sock"), "domif-getlink", "default_vm", "tap0")
	}
	linked := func(generation int64, state string) func(protocol.State) bool {
		return func(s protocol.State) bool {
			return s.Generation == generation && s.Finding == nil && slices.Equal(s.Links, []protocol.Link{{Name: "default", State: state}})
		}
	}
	put(1, "")
	p.phase(protocol.Running)
	p.says("test guest is up", 1)
	p.reports("a link that is up", linked(1, "up"))
	require.Equal(t, "tap0 up", strings.Join(strings.Fields(cable()), " "))
	put(2, vmi.InterfaceDown)
	p.reports("a link that is down", linked(2, "down"))
	require.Equal(t, "tap0 down", strings.Join(strings.Fields(cable()), " "))
	put(3, vmi.InterfaceUp)
	p.reports("a link that is up again", linked(3, "up"))
	require.Equal(t, "tap0 up", strings.Join(strings.Fields(cable()), " "))
	require.Equal(t, 2, strings.Count(p.log.String(), "switch the link"), "nothing is switched twice")
	require.Equal(t, 1, strings.Count(p.console.String(), "test guest is up"), "the guest runs on")
}

func TestALinkThatWasNotSwitchedIsTriedAgainLater(t *testing.T) {
	f := newFacts()
	v := instance()
	v.Spec.Domain.Devices.Disks = nil
	v.Spec.Domain.Devices.Interfaces = []vmi.Interface{{Name: "default", State: vmi.InterfaceDown}, {Name: "gone", State: vmi.InterfaceAbsent},
		{Name: "device", InterfaceBinding: vmi.InterfaceBinding{SRIOV: &vmi.InterfaceSRIOV{}}}}
	f.desired, f.domain, f.devices, f.session = &protocol.Desired{Instance: v}, launcher.Running, desiredDevices(v), launcher.Session{}
	down := launcher.Device{Alias: domain.InterfaceAlias("default"), Name: "interface default", Link: "down"}
	require.Equal(t, []launcher.Device{down}, f.devices, "the others have no link")
	up := down
	up.Link = "up"
	f.attached = []launcher.Device{up}
	now := time.Now()
	set := launcher.Operation{Kind: launcher.SetLink, Device: down}
	require.Equal(t, []launcher.Operation{set}, launcher.Decide(f.observe(now)).Operations)
	f.operated(set, nil, os.ErrPermission, now)
	plan := launcher.Decide(f.observe(now))
	require.Empty(t, plan.Operations)
	require.Equal(t, &vmi.Finding{Reason: launcher.ReasonSwitchFailed, Message: "set the link of interface default down: permission denied"}, plan.State.Finding)
	require.Equal(t, launcher.Backoff(1), plan.Recheck)
	require.Equal(t, []protocol.Link{{Name: "default", State: "up"}}, f.links())

	later := now.Add(plan.Recheck)
	require.Len(t, launcher.Decide(f.observe(later)).Operations, 1)
	f.operated(set, func(f *facts) { f.linked(down) }, nil, later)
	plan = launcher.Decide(f.observe(later))
	require.Empty(t, plan.Operations)
	require.Nil(t, plan.State.Finding)
	require.Equal(t, []protocol.Link{{Name: "default", State: "down"}}, f.links())
}
