package vmi

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ofTheGuest are the conditions about a guest that may still run, or a pod that may still
// be scheduled. A VMI that has ended has none of them.
var ofTheGuest = []ConditionType{
	ConditionPodScheduled, ConditionSynchronized, ConditionPaused, ConditionAgentConnected, ConditionAgentVersionNotSupported,
	ConditionAccessCredentialsSynchronized, ConditionGuestNotBooted, ConditionGuestRebootLoop, ConditionDuplicateMACAddress,
}

// End makes the status that of a VMI that has ended, whichever process finds that out:
// p is the final phase, reason becomes status.reason, and ready is why the VMI is not
// ready any more. What is about a guest that may still run is removed, and a migration from
// its node that has not ended has failed.
func (s *VirtualMachineInstanceStatus) End(p Phase, reason string, ready Finding, now metav1.Time) {
	s.SetPhase(p, now)
	s.Reason = reason
	s.FSFreezeStatus = ""
	for _, t := range ofTheGuest {
		s.RemoveCondition(t)
	}
	s.SetCondition(Condition{Type: ConditionReady, Status: corev1.ConditionFalse, Reason: ready.Reason, Message: ready.Message}, now)
	if m := s.MigrationState; m != nil && !m.Completed && m.TargetNode != "" && m.SourceNode == s.NodeName {
		m.Failed, m.Completed, m.EndTimestamp, m.FailureReason = true, true, now.DeepCopy(), fmt.Sprintf("the VMI has ended in phase %s", p)
		if m.StartTimestamp == nil {
			m.StartTimestamp = now.DeepCopy()
		}
	}
}
