package vmi_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
)

var (
	monday  = metav1.NewTime(time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC))
	tuesday = metav1.NewTime(time.Date(2026, 1, 6, 0, 0, 0, 0, time.UTC))
)

func TestAConditionKeepsItsTransitionTimeWhileItsStatusStays(t *testing.T) {
	var s vmi.VirtualMachineInstanceStatus
	s.SetCondition(vmi.Condition{Type: vmi.ConditionReady, Status: corev1.ConditionFalse, Reason: "A"}, monday)
	s.SetCondition(vmi.Condition{Type: vmi.ConditionReady, Status: corev1.ConditionFalse, Reason: "B"}, tuesday)
	require.Equal(t, []vmi.Condition{{Type: vmi.ConditionReady, Status: corev1.ConditionFalse, Reason: "B", LastTransitionTime: monday}}, s.Conditions)

	s.SetCondition(vmi.Condition{Type: vmi.ConditionReady, Status: corev1.ConditionTrue}, tuesday)
	require.Equal(t, tuesday, s.Condition(vmi.ConditionReady).LastTransitionTime)

	s.RemoveCondition(vmi.ConditionReady)
	require.Nil(t, s.Condition(vmi.ConditionReady))
}

func TestAPhaseIsNotedOnce(t *testing.T) {
	var s vmi.VirtualMachineInstanceStatus
	s.SetPhase(vmi.PhaseScheduling, monday)
	s.SetPhase(vmi.PhaseScheduling, tuesday)
	s.SetPhase(vmi.PhaseRunning, tuesday)
	require.Equal(t, []vmi.PhaseTransitionTimestamp{
		{Phase: vmi.PhaseScheduling, PhaseTransitionTimestamp: monday},
		{Phase: vmi.PhaseRunning, PhaseTransitionTimestamp: tuesday},
	}, s.PhaseTransitionTimestamps)
}

func TestOnlyTheEndsAreFinal(t *testing.T) {
	for p, final := range map[vmi.Phase]bool{
		vmi.PhaseUnset: false, vmi.PhasePending: false, vmi.PhaseScheduling: false, vmi.PhaseScheduled: false, vmi.PhaseRunning: false,
		vmi.PhaseUnknown: false, vmi.PhaseSucceeded: true, vmi.PhaseFailed: true,
	} {
		require.Equal(t, final, p.Final(), "%q", p)
	}
}

func TestProcessorsAreCountedOverTheWholeTopology(t *testing.T) {
	var none *vmi.CPU
	require.EqualValues(t, 1, none.VCPUs())
	require.EqualValues(t, 1, (&vmi.CPU{}).VCPUs())
	require.EqualValues(t, 12, (&vmi.CPU{Sockets: 2, Cores: 3, Threads: 2}).VCPUs())
}

func TestTheEndOfAVMIIsThatOfItsMigration(t *testing.T) {
	failed := vmi.MigrationState{MigrationUID: "m", SourceNode: "n", TargetNode: "n2", StartTimestamp: &tuesday, EndTimestamp: &tuesday,
		Failed: true, Completed: true, FailureReason: "the VMI has ended in phase Failed"}
	begun := failed
	begun.StartTimestamp = &monday
	for name, tt := range map[string]struct{ before, want vmi.MigrationState }{
		"it was not begun":      {vmi.MigrationState{MigrationUID: "m", SourceNode: "n", TargetNode: "n2"}, failed},
		"it was begun":          {vmi.MigrationState{MigrationUID: "m", SourceNode: "n", TargetNode: "n2", StartTimestamp: &monday}, begun},
		"it has ended":          {vmi.MigrationState{MigrationUID: "m", SourceNode: "n", TargetNode: "n2", Completed: true}, vmi.MigrationState{MigrationUID: "m", SourceNode: "n", TargetNode: "n2", Completed: true}},
		"it was from elsewhere": {vmi.MigrationState{MigrationUID: "m", SourceNode: "n3", TargetNode: "n2"}, vmi.MigrationState{MigrationUID: "m", SourceNode: "n3", TargetNode: "n2"}},
	} {
		s := vmi.VirtualMachineInstanceStatus{Phase: vmi.PhaseRunning, NodeName: "n", MigrationState: &tt.before}
		s.End(vmi.PhaseFailed, "Crashed", vmi.Finding{Reason: vmi.ReasonGuestNotRunning}, tuesday)
		require.Equal(t, &tt.want, s.MigrationState, name)
	}
}

func TestAnEndedStatusSaysNothingOfAGuestThatRuns(t *testing.T) {
	s := vmi.VirtualMachineInstanceStatus{Phase: vmi.PhaseRunning, FSFreezeStatus: "frozen", NodeName: "n"}
	stays := []vmi.ConditionType{vmi.ConditionSoftwareEmulation, vmi.ConditionLiveMigratable, vmi.ConditionEvictionRequested}
	goes := []vmi.ConditionType{
		vmi.ConditionPodScheduled, vmi.ConditionSynchronized, vmi.ConditionPaused, vmi.ConditionAgentConnected,
		vmi.ConditionAgentVersionNotSupported, vmi.ConditionAccessCredentialsSynchronized, vmi.ConditionGuestNotBooted, vmi.ConditionDuplicateMACAddress,
	}
	for _, c := range append(goes, stays...) {
		s.SetCondition(vmi.Condition{Type: c, Status: corev1.ConditionTrue}, monday)
	}
	s.End(vmi.PhaseFailed, "Crashed", vmi.Finding{Reason: vmi.ReasonGuestNotRunning, Message: "QEMU was killed"}, tuesday)
	want := vmi.VirtualMachineInstanceStatus{
		Phase: vmi.PhaseFailed, Reason: "Crashed", NodeName: "n",
		PhaseTransitionTimestamps: []vmi.PhaseTransitionTimestamp{{Phase: vmi.PhaseFailed, PhaseTransitionTimestamp: tuesday}},
	}
	for _, c := range stays {
		want.SetCondition(vmi.Condition{Type: c, Status: corev1.ConditionTrue}, monday)
	}
	want.SetCondition(vmi.Condition{Type: vmi.ConditionReady, Status: corev1.ConditionFalse, Reason: vmi.ReasonGuestNotRunning, Message: "QEMU was killed"}, tuesday)
	require.Equal(t, want, s)
}
