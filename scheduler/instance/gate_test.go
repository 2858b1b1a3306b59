package instance_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/vmi"
)

func startPaused(v *vmi.VirtualMachineInstance) { v.Spec.StartStrategy = new(vmi.StartPaused) }

func ungated(p *corev1.Pod) {
	p.Spec.ReadinessGates, p.Status.Conditions = nil, p.Status.Conditions[:1]
}

func TestTheGateOfAPodSaysWhetherItsGuestIsPaused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		vmi  *vmi.VirtualMachineInstance
		pod  *corev1.Pod
		want string // "": it says so already
	}{
		"it is opened as the VMI is handed over":             {stored(vmi.PhaseScheduling), launcher(running, ungranted), "True"},
		"it is opened later if that failed":                  {stored(vmi.PhaseRunning, ready), launcher(running, ungranted), "True"},
		"it stays open":                                      {stored(vmi.PhaseRunning, ready), launcher(running), ""},
		"it is closed while the guest is paused":             {stored(vmi.PhaseRunning, paused), launcher(running), "False"},
		"it stays closed":                                    {stored(vmi.PhaseRunning, paused), launcher(running, shutGate), ""},
		"it is opened when the guest is resumed":             {stored(vmi.PhaseRunning, ready), launcher(running, shutGate), "True"},
		"it is not opened before a guest that starts paused": {stored(vmi.PhaseScheduling, startPaused), launcher(running, ungranted), ""},
		"nor before that guest runs":                         {stored(vmi.PhaseScheduled, startPaused), launcher(running, ungranted), ""},
		"nor while it is paused":                             {stored(vmi.PhaseRunning, startPaused, paused), launcher(running, ungranted), ""},
		"it is opened when that guest is unpaused":           {stored(vmi.PhaseRunning, startPaused, ready), launcher(running, ungranted), "True"},
		"a pod that ends needs no gate":                      {stored(vmi.PhaseRunning, paused), launcher(running, leaving), ""},
		"a pod of before has none":                           {stored(vmi.PhaseRunning, paused), launcher(running, ungated), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got string
			for _, a := range instance.Decide(observe(c.vmi, c.pod)).Actions {
				if g, ok := a.(scheduler.SetPodCondition); ok {
					require.Equal(t, c.pod.Name, g.Name)
					require.Equal(t, c.pod.UID, g.UID)
					require.EqualValues(t, vmi.PodConditionUnpaused, g.Condition.Type)
					got = string(g.Condition.Status)
				}
			}
			require.Equal(t, c.want, got)
		})
	}
}
