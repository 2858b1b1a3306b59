package instance

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/internal/scheduler/launched"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
)

// gate is the readiness gate of launcher pods.
const gate = corev1.PodConditionType(vmi.PodConditionUnpaused)

// opened makes the readiness gate of the active pod say whether the guest is paused, so
// that a paused guest leaves its Services. It is nothing if the gate says so already.
func opened(o Observed) []scheduler.Action {
	p := o.Pods.Active
	if p == nil || launched.Ended(p) || p.DeletionTimestamp != nil || !ours(o, p) || !hasGate(p) {
		return nil
	}
	status, reason, message := corev1.ConditionTrue, "NotPaused", "the guest is not paused"
	switch c := o.VMI.Status.Condition(vmi.ConditionPaused); {
	case c != nil && c.Status == corev1.ConditionTrue:
		status, reason, message = corev1.ConditionFalse, "Paused", "the guest is paused"
	case o.VMI.Spec.StartsPaused() && o.VMI.Status.Phase != vmi.PhaseRunning:
		return nil // a gate without its condition is closed
	}
	closed, ready := shut(o)
	now := podCondition(p, gate)
	if now == nil && status == corev1.ConditionFalse || now != nil && now.Status == status || ready && status == corev1.ConditionTrue {
		return closed
	}
	return append(closed, scheduler.SetPodCondition{Name: p.Name, UID: p.UID, Condition: corev1.PodCondition{
		Type: gate, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(o.Now),
	}})
}

// gateAlone says that nothing but the readiness gate keeps the pod from being ready.
func gateAlone(p *corev1.Pod) bool {
	containers := podCondition(p, corev1.ContainersReady)
	if !hasGate(p) || containers == nil || containers.Status != corev1.ConditionTrue {
		return false
	}
	return !slices.ContainsFunc(p.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool {
		c := podCondition(p, g.ConditionType)
		return g.ConditionType != gate && (c == nil || c.Status != corev1.ConditionTrue)
	})
}

func hasGate(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool { return g.ConditionType == gate })
}

// podCondition is the condition of the pod with this type, or nil.
func podCondition(p *corev1.Pod, t corev1.PodConditionType) *corev1.PodCondition {
	i := slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == t })
	if i < 0 {
		return nil
	}
	return &p.Status.Conditions[i]
}
