package vmi

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// ConditionDisruptionTarget of a VMI is True when something else than its user ends its
// pod: a drain, an eviction, a preemption, or whoever deletes the pod. Reason is one of
// those below. virt-controller, which alone reads pods, writes it while the guest may
// still run, so that whoever reports the end knows its cause.
const ConditionDisruptionTarget ConditionType = "DisruptionTarget"

// Reasons of the condition DisruptionTarget, and of the end of a VMI that follows.
const (
	// ReasonEvicted: the pod was evicted from its node.
	ReasonEvicted = "Evicted"
	// ReasonPreempted: the pod had to make room for one of a higher priority.
	ReasonPreempted = "Preempted"
	// ReasonPodDeleted: the pod was deleted, and its VMI was not.
	ReasonPodDeleted = "PodDeleted"
	// ReasonLivenessProbeFailed: the kubelet ended the pod, whose liveness probe failed.
	// The condition does not have it, since the pod says nothing of it before its end.
	ReasonLivenessProbeFailed = "LivenessProbeFailed"
)

// UnknownDisruption is why a guest was ended whose pod was ended, as long as it is not
// known by what.
const UnknownDisruption = "the pod of the VMI was evicted, deleted or found unhealthy"

// Disruption is why the VMI's pod is ended, as the condition says. It is false if no such
// thing is known.
func (s *VirtualMachineInstanceStatus) Disruption() (Finding, bool) {
	c := s.Condition(ConditionDisruptionTarget)
	if c == nil || c.Status != corev1.ConditionTrue {
		return Finding{}, false
	}
	return Finding{Reason: c.Reason, Message: c.Message}, true
}

// Disrupted says that the VMI has ended because its pod was ended from outside: its guest
// did not power itself off, also if it powered off in order.
func (s *VirtualMachineInstanceStatus) Disrupted() bool {
	if !s.Phase.Final() {
		return false
	}
	switch s.Reason {
	case ReasonEvicted, ReasonPreempted, ReasonPodDeleted, ReasonLivenessProbeFailed:
		return true
	}
	return false
}

// DisruptionUnknown says that the VMI has ended with its pod, and that it is not known yet by
// what the pod was ended. end is how the guest ended.
func (s *VirtualMachineInstanceStatus) DisruptionUnknown() (end string, ok bool) {
	c := s.Condition(ConditionReady)
	if c == nil || !s.Phase.Final() || s.Reason != ReasonEvicted {
		return "", false
	}
	return strings.CutPrefix(c.Message, UnknownDisruption+"; ")
}

// PhaseSince is when the phase became p, in whole seconds of the clock of whoever wrote it.
// Zero: it did not, or it is not known.
func (s *VirtualMachineInstanceStatus) PhaseSince(p Phase) time.Time {
	for _, t := range s.PhaseTransitionTimestamps {
		if t.Phase == p {
			return t.PhaseTransitionTimestamp.Time
		}
	}
	return time.Time{}
}

// HasRun says that the guest of the VMI ran at some time.
func (s *VirtualMachineInstanceStatus) HasRun() bool {
	for _, t := range s.PhaseTransitionTimestamps {
		if t.Phase == PhaseRunning {
			return true
		}
	}
	return s.Phase == PhaseRunning
}
