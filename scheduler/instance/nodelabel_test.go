package instance_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// labelledWith gives the VMI the label of a node, or none.
func labelledWith(node string) vmitest.Option {
	return func(v *vmi.VirtualMachineInstance) {
		if v.Labels = nil; node != "" {
			v.Labels = map[string]string{vmi.NodeNameLabel: node}
		}
	}
}

func TestAVMIHasTheLabelOfItsNode(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		vmi  *vmi.VirtualMachineInstance
		pod  *corev1.Pod
		want string // "": it is not written
	}{
		"a VMI whose pod has no node has none":      {stored(vmi.PhaseScheduling, labelledWith("")), launcher(), ""},
		"it is written while the pod is made":       {stored(vmi.PhaseScheduling, labelledWith("")), launcher(bound), node},
		"also if nothing else is written yet":       {stored(vmi.PhaseUnset), launcher(bound, young), node},
		"it is written once":                        {stored(vmi.PhaseScheduling), launcher(bound), ""},
		"it is written as the VMI is handed over":   {stored(vmi.PhaseScheduling, labelledWith("")), launcher(running), node},
		"it is written later if that failed":        {stored(vmi.PhaseScheduled, labelledWith("")), launcher(running), node},
		"also beside a change of the conditions":    {stored(vmi.PhaseRunning, labelledWith("")), launcher(running, notReady), node},
		"it stays":                                  {stored(vmi.PhaseRunning, ready), launcher(running), ""},
		"one of another node is corrected":          {stored(vmi.PhaseRunning, ready, labelledWith("other")), launcher(running), node},
		"a VMI that has ended keeps what it has":    {stored(vmi.PhaseSucceeded, labelledWith("")), launcher(exited(0, 0, "")), ""},
		"one that cannot be decoded keeps it too":   {stored(vmi.PhaseRunning, unreadable, labelledWith("")), launcher(running), ""},
		"a VMI that is deleted needs none any more": {stored(vmi.PhaseRunning, ready, deleted, labelledWith("")), launcher(running), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got string
			for _, a := range instance.Decide(observe(c.vmi, c.pod)).Actions {
				switch a := a.(type) {
				case scheduler.SetLabel:
					require.Equal(t, vmi.NodeNameLabel, a.Key)
					got = a.Value
				case writeStatus:
					if c.vmi.Status.NodeName == "" && a.Object.Status.NodeName != "" {
						require.Equal(t, a.Object.Status.NodeName, got, "before the status")
					}
				}
			}
			require.Equal(t, c.want, got)
		})
	}
}
