package instance_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// onNetwork adds a bridged interface on the secondary network, with the MAC address.
func onNetwork(name, network, mac string) vmitest.Option {
	return vmitest.WithInterface(
		vmi.Interface{Name: name, MacAddress: mac, InterfaceBinding: vmi.InterfaceBinding{Bridge: &vmi.InterfaceBridge{}}},
		vmi.NetworkSource{Multus: &vmi.MultusNetwork{NetworkName: network}})
}

// neighbour is a VMI that runs beside the one of the test.
func neighbour(name, namespace string, options ...vmitest.Option) *vmi.VirtualMachineInstance {
	v := stored(vmi.PhaseRunning, append(options, vmitest.WithName(name))...)
	v.Namespace = namespace
	return v
}

func TestADuplicateMACAddressOnASecondaryNetworkIsAWarning(t *testing.T) {
	t.Parallel()
	const mac = "02:00:00:00:77:01"
	own := stored(vmi.PhaseRunning).Namespace
	final := func(v *vmi.VirtualMachineInstance) { v.Status.Phase = vmi.PhaseSucceeded }
	absent := func(v *vmi.VirtualMachineInstance) { v.Spec.Domain.Devices.Interfaces[0].State = vmi.InterfaceAbsent }
	for name, tt := range map[string]struct {
		others []*vmi.VirtualMachineInstance
		says   string // empty: nothing
	}{
		"no other VMI":                       {},
		"the same address on the network":    {[]*vmi.VirtualMachineInstance{neighbour("b", own, onNetwork("lan", "lan", mac))}, "VMI b"},
		"written in another way":             {[]*vmi.VirtualMachineInstance{neighbour("b", own, onNetwork("x", own+"/lan", "02-00-00-00-77-01"))}, "VMI b"},
		"on another network":                 {[]*vmi.VirtualMachineInstance{neighbour("b", own, onNetwork("lan", "wan", mac))}, ""},
		"on a network of another namespace":  {[]*vmi.VirtualMachineInstance{neighbour("b", "elsewhere", onNetwork("lan", "lan", mac))}, ""},
		"another address":                    {[]*vmi.VirtualMachineInstance{neighbour("b", own, onNetwork("lan", "lan", "02:00:00:00:77:02"))}, ""},
		"an address that follows from a UID": {[]*vmi.VirtualMachineInstance{neighbour("b", own, onNetwork("lan", "lan", ""))}, ""},
		"of a VMI that has ended":            {[]*vmi.VirtualMachineInstance{neighbour("b", own, onNetwork("lan", "lan", mac), final)}, ""},
		"of an interface that is absent":     {[]*vmi.VirtualMachineInstance{neighbour("b", own, onNetwork("lan", "lan", mac), absent)}, ""},
		"of a VMI of another namespace":      {[]*vmi.VirtualMachineInstance{neighbour("secret", "elsewhere", onNetwork("lan", own+"/lan", mac))}, "a VMI of another namespace"},
		"of many": {[]*vmi.VirtualMachineInstance{
			neighbour("d", own, onNetwork("lan", "lan", mac)), neighbour("c", own, onNetwork("lan", "lan", mac)), neighbour("b", own, onNetwork("lan", "lan", mac)),
			neighbour("f", own, onNetwork("lan", "lan", mac)), neighbour("e", own, onNetwork("lan", "lan", mac)),
		}, "VMI b, VMI c, VMI d, 2 more"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := stored(vmi.PhaseRunning, onNetwork("lan", "lan", mac))
			v.Status.SetCondition(vmi.Condition{Type: vmi.ConditionReady, Status: corev1.ConditionTrue}, metav1.NewTime(now))
			o := observe(v, launcher(bound, running))
			o.Neighbours = tt.others
			p := instance.Decide(o)
			if tt.says == "" {
				require.Empty(t, p.Actions)
				return
			}
			f := vmi.Finding{Reason: instance.DuplicateMACAddress, Message: "interface lan has the MAC address " + mac + " on network " + own + "/lan, and so has " + tt.says + ": give each another one, or none"}
			require.Contains(t, p.Actions, scheduler.Action(scheduler.Emit{Warning: true, Finding: f}))
			s := statusOf(t, p)
			c := s.Condition(vmi.ConditionDuplicateMACAddress)
			require.Equal(t, vmi.Condition{Type: vmi.ConditionDuplicateMACAddress, Status: corev1.ConditionTrue, Reason: f.Reason, Message: f.Message, LastTransitionTime: c.LastTransitionTime}, *c)
			require.Equal(t, corev1.ConditionTrue, s.Condition(vmi.ConditionReady).Status, "the guest runs")

			// It is written once, and taken back when the other is gone.
			o.VMI = v.DeepCopy()
			o.VMI.Status = s
			require.NotContains(t, instance.Decide(o).Actions, scheduler.Action(scheduler.Emit{Warning: true, Finding: f}))
			o.Neighbours = append(slices.Clone(tt.others), rename(tt.others[0], "a-new-one"))
			require.Empty(t, instance.Decide(o).Actions, "one more changes nothing that is written")
			o.Neighbours = nil
			s = statusOf(t, instance.Decide(o))
			require.Nil(t, s.Condition(vmi.ConditionDuplicateMACAddress))
		})
	}
}

func TestAVMIThatHasEndedHasNoStations(t *testing.T) {
	t.Parallel()
	v := stored(vmi.PhaseRunning, onNetwork("lan", "lan", "02:00:00:00:77:01"))
	require.Equal(t, []string{v.Namespace + "/lan 02:00:00:00:77:01"}, instance.MACAddressKeys(v))
	v.Status.Phase = vmi.PhaseFailed
	require.Empty(t, instance.MACAddressKeys(v))
}

// rename is the VMI with another name.
func rename(v *vmi.VirtualMachineInstance, name string) *vmi.VirtualMachineInstance {
	v = v.DeepCopy()
	v.Name = name
	return v
}
