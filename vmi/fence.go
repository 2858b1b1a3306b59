package vmi

import corev1 "k8s.io/api/core/v1"

// Uncertain says that the VMI has failed, and that its guest may still run: its launcher did
// not answer when its time was over. virt-controller, which observes the end of the pod, or
// virt-handler, which observes that nothing of it is left, makes Ready False then.
func (s *VirtualMachineInstanceStatus) Uncertain() bool {
	c := s.Condition(ConditionReady)
	return s.Phase == PhaseFailed && c != nil && c.Status == corev1.ConditionUnknown
}

// PodRemoved says that the VMI's pod does not exist any more, and that its guest may still
// run. virt-controller, which alone reads pods, writes it. It is over when virt-handler of
// the node of the VMI reports that nothing of the pod is left there, or when the node is
// fenced.
func (s *VirtualMachineInstanceStatus) PodRemoved() bool {
	c := s.Condition(ConditionReady)
	return c != nil && c.Status == corev1.ConditionUnknown && c.Reason == ReasonPodRemoved
}
