package instance_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
)

// moves makes the VMI one that moves from its node to another.
func moves(v *vmi.VirtualMachineInstance) {
	v.Status.ActivePods["target-uid"] = "node2"
	v.Status.MigrationState = &vmi.MigrationState{MigrationUID: "job", SourceNode: node, SourcePod: pod.Name(v), TargetNode: "node2", TargetPod: "virt-launcher-testvmi-vvvvv"}
}

// secondPod is the pod that a migration moves the VMI to.
func secondPod(change ...func(*corev1.Pod)) *corev1.Pod {
	p := launcher(change...)
	p.Name, p.UID, p.Labels[vmi.MigrationJobLabel] = "virt-launcher-testvmi-vvvvv", "target-uid", "job"
	p.Spec.NodeName = "node2"
	return p
}

func readyNow(v *vmi.VirtualMachineInstance) {
	condition(vmi.ConditionReady, "", "")(v)
	v.Status.Conditions[len(v.Status.Conditions)-1].Status = corev1.ConditionTrue
}

func TestATargetDisturbsNoVMI(t *testing.T) {
	t.Parallel()
	for name, target := range map[string]*corev1.Pod{
		"that waits":              secondPod(running, ungranted),
		"that is not started yet": secondPod(),
		"that was cancelled":      secondPod(exited(1, time.Minute, "Cancelled: the launcher was stopped before the guest ran")),
		"that crashed":            secondPod(exited(137, time.Minute, "")),
		"that is deleted":         secondPod(running, leaving),
		"that claims an end":      secondPod(exited(0, time.Minute, "Shutdown: the guest powered off")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			alone := instance.Decide(observe(stored(vmi.PhaseRunning, moves, readyNow), launcher(running)))
			require.Equal(t, alone, instance.Decide(observe(stored(vmi.PhaseRunning, moves, readyNow), target, launcher(running))))
			require.Equal(t, summary{}, summarize(alone))
		})
	}
}

func TestATargetEndsWithItsVMI(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		vmi  *vmi.VirtualMachineInstance
		pods []*corev1.Pod
		want []string
	}{
		{"a VMI that has ended", stored(vmi.PhaseSucceeded, moves, ranAs), []*corev1.Pod{launcher(exited(0, time.Minute, "")), secondPod(running)}, []string{"delete pod target-uid"}},
		{"one whose target has ended too", stored(vmi.PhaseSucceeded, moves, ranAs), []*corev1.Pod{launcher(exited(0, time.Minute, "")), secondPod(exited(1, time.Minute, ""))}, nil},
		{"one whose pod is gone", stored(vmi.PhaseRunning, moves), []*corev1.Pod{secondPod(running)}, []string{"delete pod target-uid", "write"}},
		{"one that is deleted and has ended", stored(vmi.PhaseSucceeded, moves, deleted), []*corev1.Pod{launcher(exited(0, time.Minute, "")), secondPod(running)}, []string{"delete pod target-uid"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, summarize(instance.Decide(observe(tt.vmi, tt.pods...))).Do)
		})
	}
}

func TestAGuestThatMovedAwayEndsNoVMI(t *testing.T) {
	t.Parallel()
	moved := launcher(exited(0, time.Minute, "MovedAway: the guest runs in another pod"))
	require.Equal(t, summary{}, summarize(instance.Decide(observe(stored(vmi.PhaseRunning, moves), moved, secondPod(running)))))
	for name, v := range map[string]*vmi.VirtualMachineInstance{
		"without a migration":           stored(vmi.PhaseRunning),
		"of a migration that failed":    stored(vmi.PhaseRunning, moves, func(v *vmi.VirtualMachineInstance) { v.Status.MigrationState.Failed = true }),
		"of a migration from elsewhere": stored(vmi.PhaseRunning, moves, func(v *vmi.VirtualMachineInstance) { v.Status.MigrationState.SourceNode = "node3" }),
	} {
		s := summarize(instance.Decide(observe(v, moved)))
		require.Equal(t, vmi.PhaseFailed, s.Phase, name)
		require.Equal(t, "MovedAway", s.Reason, name)
	}
}
