package handler

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/vmi"
)

func TestAGuestIsAStrayWhoseVMIDoesNotRunInItsPod(t *testing.T) {
	t.Parallel()
	elsewhere := func(v *vmi.VirtualMachineInstance) {
		v.Status.NodeName, v.Status.ActivePods = "n2", map[types.UID]string{"pod-2": "n2"}
	}
	arrives := func(v *vmi.VirtualMachineInstance) {
		v.Status.NodeName = "n2"
		v.Status.ActivePods = map[types.UID]string{"pod-2": "n2", pod: node}
		v.Status.MigrationState = &vmi.MigrationState{SourceNode: "n2", TargetNode: node}
	}
	left := func(v *vmi.VirtualMachineInstance) {
		arrives(v)
		v.Status.MigrationState = &vmi.MigrationState{SourceNode: node, TargetNode: "n2", Completed: true}
	}
	for name, tt := range map[string]struct {
		all  []*vmi.VirtualMachineInstance
		want bool
	}{
		"no VMI":                                   {nil, true},
		"a VMI that runs in it":                    {[]*vmi.VirtualMachineInstance{instance(vmi.PhaseRunning)}, false},
		"a VMI that starts in it":                  {[]*vmi.VirtualMachineInstance{instance(vmi.PhaseScheduled)}, false},
		"a VMI that is deleted":                    {[]*vmi.VirtualMachineInstance{instance(vmi.PhaseRunning, deleted)}, false},
		"a VMI that cannot be decoded":             {[]*vmi.VirtualMachineInstance{instance(vmi.PhaseRunning, unreadable)}, false},
		"a VMI whose pod was removed":              {[]*vmi.VirtualMachineInstance{instance(vmi.PhaseRunning, podRemoved)}, false},
		"a VMI that has failed":                    {[]*vmi.VirtualMachineInstance{instance(vmi.PhaseFailed)}, true},
		"a VMI that has failed and starts anew":    {[]*vmi.VirtualMachineInstance{instance(vmi.PhaseScheduling)}, true},
		"a VMI of the name that runs elsewhere":    {[]*vmi.VirtualMachineInstance{instance(vmi.PhaseRunning, elsewhere)}, true},
		"a VMI that moves to it":                   {[]*vmi.VirtualMachineInstance{instance(vmi.PhaseRunning, arrives)}, false},
		"a VMI that has moved away":                {[]*vmi.VirtualMachineInstance{instance(vmi.PhaseRunning, left)}, true},
		"a VMI of another pod, and one of this":    {[]*vmi.VirtualMachineInstance{instance(vmi.PhaseRunning, elsewhere), instance(vmi.PhaseRunning)}, false},
		"a VMI in its pod on a node with its name": {[]*vmi.VirtualMachineInstance{instance(vmi.PhaseRunning, func(v *vmi.VirtualMachineInstance) { v.Status.ActivePods[pod] = "n2" })}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Strays([]types.UID{pod}, tt.all, node)
			require.Equal(t, tt.want, len(got) == 1)
		})
	}
}
