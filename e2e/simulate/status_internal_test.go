package simulate

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWhatAKubeletSaysOfAPod(t *testing.T) {
	t.Parallel()
	const gate corev1.PodConditionType = "example.com/open"
	open := corev1.PodCondition{Type: gate, Status: corev1.ConditionTrue}
	tests := []struct {
		name       string
		conditions []corev1.PodCondition
		exit       *Exit
		phase      corev1.PodPhase
		ready      corev1.ConditionStatus
		reason     string
		ended      *corev1.ContainerStateTerminated
	}{
		{name: "it runs, and its gate is not open", phase: corev1.PodRunning, ready: corev1.ConditionFalse, reason: "ReadinessGatesNotReady"},
		{name: "it runs, and its gate is open", conditions: []corev1.PodCondition{open}, phase: corev1.PodRunning, ready: corev1.ConditionTrue},
		{
			name: "its container ended well", conditions: []corev1.PodCondition{open}, exit: &Exit{Message: "Shutdown: off"},
			phase: corev1.PodSucceeded, ready: corev1.ConditionFalse, reason: "PodCompleted",
			ended: &corev1.ContainerStateTerminated{Reason: "Completed", Message: "Shutdown: off"},
		},
		{
			name: "its container was killed", exit: &Exit{Code: killed}, phase: corev1.PodFailed, ready: corev1.ConditionFalse, reason: "PodCompleted",
			ended: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "Error"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{UID: "u"},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "compute"}}, ReadinessGates: []corev1.PodReadinessGate{{ConditionType: gate}}},
				Status:     corev1.PodStatus{Conditions: tt.conditions},
			}
			s := status(p, reportOf(p, tt.exit), metav1.Time{}, metav1.Time{})
			require.Equal(t, tt.phase, s.Phase)
			require.Equal(t, tt.ended, s.ContainerStatuses[0].State.Terminated)
			i := len(s.Conditions) - 1
			require.Equal(t, corev1.PodCondition{Type: corev1.PodReady, Status: tt.ready, Reason: tt.reason}, s.Conditions[i])
		})
	}
}
