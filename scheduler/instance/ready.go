package instance

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
)

// nodeChecks and podChecks are the questions why a VMI that was handed over is
// not ready for another reason than its guest. The first answer counts.
var (
	nodeChecks = []func(Observed) (vmi.Finding, bool){nodeNotReady, handlerNotReady}
	podChecks  = []func(Observed) (vmi.Finding, bool){podTerminating, podConditionMissing, podNotReady}
)

func firstOf(o Observed, checks ...func(Observed) (vmi.Finding, bool)) (vmi.Finding, bool) {
	for _, check := range checks {
		if f, ok := check(o); ok {
			return f, true
		}
	}
	return vmi.Finding{}, false
}

// readiness writes why a VMI that was handed over is not ready, as far as
// virt-handler cannot know, and takes it back when it is over. What virt-handler
// wrote stays, but for a better reason.
func readiness(o Observed) scheduler.Plan {
	if left := nodeSettles(o); left > 0 {
		return scheduler.Plan{Recheck: left} // the conditions of its pods follow the node's
	}
	f, ok := firstOf(o, slices.Concat(nodeChecks, podChecks)...)
	if left := podSettles(o); ok && isNodeReason(reasonOfReady(o)) && !isNodeReason(f.Reason) && left > 0 {
		return scheduler.Plan{Recheck: left}
	}
	var p scheduler.Plan
	switch {
	case ok && f.Reason == vmi.ReasonPodTerminating:
		p = terminating(o, f)
	case ok:
		p = writeNotReady(o, f)
	case keptByHandler(o):
		p = write(o, func(s *vmi.VirtualMachineInstanceStatus, now metav1.Time) { s.SetCondition(guestReady(s), now) })
	}
	p.Recheck = settles(o)
	return p
}

// nodeReadiness writes why the node keeps a deleted VMI from its end.
func nodeReadiness(o Observed) scheduler.Plan {
	var p scheduler.Plan
	if f, ok := firstOf(o, nodeChecks...); ok {
		p = writeNotReady(o, f)
	}
	p.Recheck = settles(o)
	return p
}

func writeNotReady(o Observed, f vmi.Finding) scheduler.Plan {
	return write(o, func(s *vmi.VirtualMachineInstanceStatus, now metav1.Time) { setNotReady(s, f, now) }, nodeEvents(o, f)...)
}

// terminating writes that the pod is ended, and by what: the last that is written before
// virt-handler reports the end, which cannot know it.
func terminating(o Observed, f vmi.Finding) scheduler.Plan {
	d, _ := disruption(o.Pods.Active)
	return write(o, func(s *vmi.VirtualMachineInstanceStatus, now metav1.Time) {
		s.SetCondition(vmi.Condition{Type: vmi.ConditionDisruptionTarget, Status: corev1.ConditionTrue, Reason: d.Reason, Message: d.Message}, now)
		setNotReady(s, f, now)
	})
}

// setNotReady writes the finding. The message of a node's reason stays as it was
// written first: another name of the pod of virt-handler is no change.
func setNotReady(s *vmi.VirtualMachineInstanceStatus, f vmi.Finding, now metav1.Time) {
	if c := s.Condition(vmi.ConditionReady); c != nil && c.Reason == f.Reason && isNodeReason(f.Reason) {
		return
	}
	s.SetCondition(notReady(f.Reason, f.Message), now)
}

// nodeEvents are the events that go with a finding: one where the node is new
// among the reasons. Of pods the kubelet reports.
func nodeEvents(o Observed, f vmi.Finding) []scheduler.Emit {
	if !isNodeReason(f.Reason) {
		return nil
	}
	return transition(o, vmi.ConditionReady, f)
}

func isNodeReason(reason string) bool {
	return reason == vmi.ReasonNodeNotReady || reason == vmi.ReasonHandlerNotReady
}

// guestReady is the condition Ready where only the guest counts. virt-handler
// keeps what virt-controller wrote, so this says what virt-handler would.
func guestReady(s *vmi.VirtualMachineInstanceStatus) vmi.Condition {
	paused := s.Condition(vmi.ConditionPaused)
	switch {
	case s.Phase != vmi.PhaseRunning:
		return notReady(vmi.ReasonGuestNotRunning, "the guest does not run yet")
	case paused != nil && paused.Status == corev1.ConditionTrue:
		return notReady(vmi.ReasonGuestNotRunning, cmp.Or(paused.Message, "the guest is paused"))
	}
	return vmi.Condition{Type: vmi.ConditionReady, Status: corev1.ConditionTrue}
}

// keptByHandler reports whether Ready is not True for a reason that virt-handler does
// not take back, also for none.
func keptByHandler(o Observed) bool {
	c := o.VMI.Status.Condition(vmi.ConditionReady)
	return c != nil && c.Status != corev1.ConditionTrue && vmi.NotReadyBy(c.Reason) != vmi.HandlerOwns
}

// reasonOfReady is the reason of the condition Ready if it is False, or "".
func reasonOfReady(o Observed) string {
	if c := o.VMI.Status.Condition(vmi.ConditionReady); c != nil && c.Status == corev1.ConditionFalse {
		return c.Reason
	}
	return ""
}

// settles is when a node or handler that is not ready has had its time. 0: none
// is waited for.
func settles(o Observed) time.Duration {
	if o.Node.Name == "" {
		return 0
	}
	return soonest(nodeSettles(o), handlerSettles(o))
}

func podTerminating(o Observed) (vmi.Finding, bool) {
	if f, ok := disruptionTarget(o.Pods.Active); ok {
		return vmi.Finding{Reason: vmi.ReasonPodTerminating, Message: f.Message}, true
	}
	return vmi.Finding{Reason: vmi.ReasonPodTerminating, Message: "the pod of the VMI is being deleted"}, o.Pods.Active.DeletionTimestamp != nil
}

func podConditionMissing(o Observed) (vmi.Finding, bool) {
	return vmi.Finding{Reason: vmi.ReasonPodConditionMissing, Message: "the pod of the VMI does not report whether it is ready"}, podReady(o.Pods.Active) == nil
}

func podNotReady(o Observed) (vmi.Finding, bool) {
	c := podReady(o.Pods.Active)
	if c == nil || c.Status == corev1.ConditionTrue || guestDecides(o) {
		return vmi.Finding{}, false
	}
	return vmi.Finding{Reason: cmp.Or(c.Reason, vmi.ReasonPodNotReady), Message: c.Message}, true
}

// guestDecides says that the pod is not ready because of its guest alone, of which
// virt-handler reports: because of the readiness gate, or because a guest that is
// paused answers no probe.
func guestDecides(o Observed) bool {
	if gateAlone(o.Pods.Active) {
		return true
	}
	if paused := o.VMI.Status.Condition(vmi.ConditionPaused); paused == nil || paused.Status != corev1.ConditionTrue {
		return false
	}
	s := o.Pods.Active.Status
	for _, c := range slices.Concat(s.InitContainerStatuses, s.ContainerStatuses) {
		if !c.Ready && (c.Name != vmi.ComputeContainer || c.State.Running == nil) {
			return false
		}
	}
	return true
}

// podReady is the condition Ready of the pod, or nil.
func podReady(p *corev1.Pod) *corev1.PodCondition { return podCondition(p, corev1.PodReady) }
