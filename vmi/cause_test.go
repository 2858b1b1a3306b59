package vmi_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
)

func TestReadyAndReasonCarryTheCause(t *testing.T) {
	t.Parallel()
	is := func(t vmi.ConditionType, s corev1.ConditionStatus, reason, message string) vmi.Condition {
		return vmi.Condition{Type: t, Status: s, Reason: reason, Message: message}
	}
	idle := is(vmi.ConditionReady, corev1.ConditionFalse, vmi.ReasonGuestNotRunning, "the guest does not run yet")
	none := is(vmi.ConditionReady, corev1.ConditionFalse, vmi.ReasonPodNotExists, "the VMI has no pod")
	image := is(vmi.ConditionSynchronized, corev1.ConditionFalse, "ErrImagePull", "volume root: not found")
	tests := []struct {
		name       string
		phase      vmi.Phase
		conditions []vmi.Condition
		reason     string
		ready      string // the reason and the message of Ready
	}{
		{"nothing is known", vmi.PhaseUnset, nil, "", ""},
		{"a start without a fault", vmi.PhaseScheduling, []vmi.Condition{idle}, "", "GuestNotRunning: the guest does not run yet"},
		{"an image that cannot be pulled", vmi.PhaseScheduling, []vmi.Condition{idle, image}, "ErrImagePull", "GuestNotRunning: volume root: not found"},
		{"no node that fits", vmi.PhaseScheduling, []vmi.Condition{idle, is(vmi.ConditionPodScheduled, corev1.ConditionFalse, "Unschedulable", "0/2 nodes")},
			"Unschedulable", "GuestNotRunning: 0/2 nodes"},
		{"no pod", vmi.PhasePending, []vmi.Condition{is(vmi.ConditionSynchronized, corev1.ConditionFalse, "FailedCreate", "quota"), none},
			"FailedCreate", "PodNotExists: quota"},
		{"a node that does not respond is more than what was before", vmi.PhaseScheduling, []vmi.Condition{image, is(vmi.ConditionReady, corev1.ConditionFalse, "NodeNotReady", "node n1")},
			"NodeNotReady", "NodeNotReady: node n1"},
		{"a guest that is paused", vmi.PhaseRunning, []vmi.Condition{is(vmi.ConditionReady, corev1.ConditionFalse, vmi.ReasonGuestNotRunning, "volume root is full"),
			is(vmi.ConditionPaused, corev1.ConditionTrue, vmi.ReasonPausedIOError, "volume root is full")}, "PausedIOError", "GuestNotRunning: volume root is full"},
		{"a condition without a reason says nothing", vmi.PhaseScheduling, []vmi.Condition{idle, is(vmi.ConditionSynchronized, corev1.ConditionFalse, "", "x")},
			"", "GuestNotRunning: the guest does not run yet"},
		{"a guest that runs and is ready", vmi.PhaseRunning, []vmi.Condition{is(vmi.ConditionReady, corev1.ConditionTrue, "", ""), image}, "", ": "},
		{"a guest that is ready and seems not to have booted", vmi.PhaseRunning, []vmi.Condition{is(vmi.ConditionReady, corev1.ConditionTrue, "", ""),
			is(vmi.ConditionGuestNotBooted, corev1.ConditionUnknown, "NothingWrittenToConsole", "it is silent")}, "", ": it is silent"},
		{"an end keeps its reason", vmi.PhaseFailed, []vmi.Condition{idle, image}, "before", "GuestNotRunning: the guest does not run yet"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := vmi.VirtualMachineInstanceStatus{Phase: tt.phase, Reason: "before"}
			for _, c := range tt.conditions {
				s.SetCondition(c, metav1.Now())
			}
			s.Explain()
			require.Equal(t, tt.reason, s.Reason)
			if c := s.Condition(vmi.ConditionReady); c != nil {
				require.Equal(t, tt.ready, c.Reason+": "+c.Message)
			}
			once := s.DeepCopy()
			s.Explain()
			require.Equal(t, *once, s, "again it changes nothing")
		})
	}
}
