package controller

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// handed is a VMI in the phase, handed over to this node.
func handed(p vmi.Phase, options ...vmitest.Option) *vmi.VirtualMachineInstance {
	v := vmitest.New()
	v.Status.Phase = p
	v.Status.NodeName, v.Status.ActivePods = nodeName, map[types.UID]string{podUID: nodeName}
	for _, o := range options {
		o(v)
	}
	return v
}

func TestAGuestIsAStrayWhoseVMIDoesNotRunInItsPod(t *testing.T) {
	t.Parallel()
	elsewhere := func(v *vmi.VirtualMachineInstance) {
		v.Status.NodeName, v.Status.ActivePods = "n2", map[types.UID]string{"pod-2": "n2"}
	}
	arrives := func(v *vmi.VirtualMachineInstance) {
		v.Status.NodeName = "n2"
		v.Status.ActivePods = map[types.UID]string{"pod-2": "n2", podUID: nodeName}
		v.Status.MigrationState = &vmi.MigrationState{SourceNode: "n2", TargetNode: nodeName}
	}
	left := func(v *vmi.VirtualMachineInstance) {
		arrives(v)
		v.Status.MigrationState = &vmi.MigrationState{SourceNode: nodeName, TargetNode: "n2", Completed: true}
	}
	for name, tt := range map[string]struct {
		all  []*vmi.VirtualMachineInstance
		want bool
	}{
		"no VMI":                  {nil, true},
		"a VMI that runs in it":   {[]*vmi.VirtualMachineInstance{handed(vmi.PhaseRunning)}, false},
		"a VMI that starts in it": {[]*vmi.VirtualMachineInstance{handed(vmi.PhaseScheduled)}, false},
		"a VMI that is deleted":   {[]*vmi.VirtualMachineInstance{handed(vmi.PhaseRunning, func(v *vmi.VirtualMachineInstance) { v.DeletionTimestamp = new(metav1.Now()) })}, false},
		"a VMI whose pod was removed": {[]*vmi.VirtualMachineInstance{handed(vmi.PhaseRunning, func(v *vmi.VirtualMachineInstance) {
			v.Status.SetCondition(vmi.Condition{Type: vmi.ConditionReady, Status: "Unknown", Reason: vmi.ReasonPodRemoved}, metav1.Now())
		})}, false},
		"a VMI that has failed":                    {[]*vmi.VirtualMachineInstance{handed(vmi.PhaseFailed)}, true},
		"a VMI that has failed and starts anew":    {[]*vmi.VirtualMachineInstance{handed(vmi.PhaseScheduling)}, true},
		"a VMI of the name that runs elsewhere":    {[]*vmi.VirtualMachineInstance{handed(vmi.PhaseRunning, elsewhere)}, true},
		"a VMI that moves to it":                   {[]*vmi.VirtualMachineInstance{handed(vmi.PhaseRunning, arrives)}, false},
		"a VMI that has moved away":                {[]*vmi.VirtualMachineInstance{handed(vmi.PhaseRunning, left)}, true},
		"a VMI of another pod, and one of this":    {[]*vmi.VirtualMachineInstance{handed(vmi.PhaseRunning, elsewhere), handed(vmi.PhaseRunning)}, false},
		"a VMI in its pod on a node with its name": {[]*vmi.VirtualMachineInstance{handed(vmi.PhaseRunning, func(v *vmi.VirtualMachineInstance) { v.Status.ActivePods[podUID] = "n2" })}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := strays([]types.UID{podUID}, tt.all, nodeName)
			require.Equal(t, tt.want, len(got) == 1)
		})
	}
}
