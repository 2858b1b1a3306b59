package vmi

import corev1 "k8s.io/api/core/v1"

// Explain puts the cause of a VMI that does not run, or is not ready, where users
// look for it: into Reason, and into the message of Ready where Ready itself only
// says that there is no pod or that the guest does not run. Whoever writes the
// conditions of a VMI calls it last. The message does not repeat the reason. It does nothing to a VMI that has ended, whose
// Reason is that of its end.
func (s *VirtualMachineInstanceStatus) Explain() {
	if s.Phase.Final() {
		return
	}
	s.Reason = ""
	ready := s.Condition(ConditionReady)
	if ready == nil || ready.Status == corev1.ConditionTrue {
		s.hint(ready)
		return
	}
	if ready.Reason != ReasonGuestNotRunning && ready.Reason != ReasonPodNotExists {
		s.Reason = ready.Reason
		return
	}
	if c := s.caused(corev1.ConditionTrue, ConditionPaused); c != nil {
		s.Reason = c.Reason // virt-handler has put the message into Ready
		return
	}
	if c := s.caused(corev1.ConditionFalse, ConditionSynchronized, ConditionPodScheduled); c != nil {
		s.Reason = c.Reason
		ready.Message = c.Message
	}
}

// hint puts what is said of a guest that seems not to have booted into the message of
// Ready, though the VMI is ready.
func (s *VirtualMachineInstanceStatus) hint(ready *Condition) {
	if c := s.Condition(ConditionGuestNotBooted); c != nil && ready != nil && ready.Status == corev1.ConditionTrue {
		ready.Message = c.Message
	}
}

// caused is the first of the conditions that has the status and a reason. Nil: there
// is none.
func (s *VirtualMachineInstanceStatus) caused(status corev1.ConditionStatus, types ...ConditionType) *Condition {
	for _, t := range types {
		if c := s.Condition(t); c != nil && c.Status == status && c.Reason != "" {
			return c
		}
	}
	return nil
}
