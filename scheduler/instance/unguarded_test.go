package instance_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/vmi"
)

func TestAVMIHasNoFinalizerWhilePodvisorMayBeDeleted(t *testing.T) {
	t.Parallel()
	release := []scheduler.Action{scheduler.RemoveFinalizer{Finalizer: vmi.Finalizer}}
	for _, p := range []vmi.Phase{vmi.PhaseUnset, vmi.PhasePending, vmi.PhaseScheduling, vmi.PhaseScheduled, vmi.PhaseRunning, vmi.PhaseSucceeded, vmi.PhaseFailed} {
		o := observe(stored(p))
		o.Unguarded = true
		require.Equal(t, release, instance.Decide(o).Actions, p)

		o = observe(stored(p, deleted))
		o.Unguarded = true
		require.Equal(t, release, instance.Decide(o).Actions, "%s, deleted", p)

		o = observe(stored(p, bare))
		o.Unguarded = true
		require.NotContains(t, instance.Decide(o).Actions, scheduler.AddFinalizer{Finalizer: vmi.Finalizer}, "%s without the finalizer", p)
	}
	o := observe(stored(vmi.PhaseUnset, bare))
	o.Unguarded = true
	var created []*corev1.Pod
	for _, a := range instance.Decide(o).Actions {
		if c, ok := a.(scheduler.CreatePod); ok {
			created = append(created, c.Pod)
		}
	}
	require.Len(t, created, 1, "the VMI is started")
}
