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
	closed, ready := shut(o)
	set := gateOf(o, p)
	if set == nil || ready && set.Condition.Status == corev1.ConditionTrue && !unasked(p) {
		return closed
	}
	return append(closed, *set)
}

// early opens the gates of targets that have a readiness probe, which the kubelet does not ask yet.
// They are not ready before: see [relabelled]. A gate that is opened later costs a second more,
// because the kubelet looks at a pod that has changed once a second. A target without such a probe
// would be ready for a moment if its kubelet were started again, and loses nothing.
func early(o Observed) []scheduler.Action {
	var all []scheduler.Action
	for _, p := range o.Pods.Targets {
		if !waits(o, p) || computeOf(p).ReadinessProbe == nil || launched.Ended(p) || p.DeletionTimestamp != nil || !hasGate(p) {
			continue
		}
		if set := gateOf(o, p); set != nil {
			all = append(all, *set)
		}
	}
	return all
}

// unasked says that the kubelet asks nothing of the guest of this pod yet: a startup probe has not
// succeeded. Such a pod is not ready.
func unasked(p *corev1.Pod) bool {
	if computeOf(p).StartupProbe == nil {
		return false
	}
	c := launched.Compute(p)
	return c == nil || c.Started == nil || !*c.Started
}

// waits says that the pod is asked nothing yet because a guest is to come. A pod that the guest has
// left may be asked again if its kubelet was started again.
func waits(o Observed, p *corev1.Pod) bool {
	m := o.VMI.Status.MigrationState
	return unasked(p) && slices.Contains(o.Pods.Targets, p) && (m == nil || m.SourcePod != p.Name)
}

// computeOf is the launcher's container of the pod, or none.
func computeOf(p *corev1.Pod) corev1.Container {
	for _, c := range p.Spec.Containers {
		if c.Name == vmi.ComputeContainer {
			return c
		}
	}
	return corev1.Container{}
}

// gateOf is what makes the gate of the pod say whether the guest is paused. Nil: it says so.
func gateOf(o Observed, p *corev1.Pod) *scheduler.SetPodCondition {
	status, reason, message := corev1.ConditionTrue, "NotPaused", "the guest is not paused"
	switch c := o.VMI.Status.Condition(vmi.ConditionPaused); {
	case c != nil && c.Status == corev1.ConditionTrue:
		status, reason, message = corev1.ConditionFalse, "Paused", "the guest is paused"
	case o.VMI.Spec.StartsPaused() && o.VMI.Status.Phase != vmi.PhaseRunning:
		return nil // a gate without its condition is closed
	}
	now := podCondition(p, gate)
	if now == nil && status == corev1.ConditionFalse || now != nil && now.Status == status {
		return nil
	}
	return &scheduler.SetPodCondition{Name: p.Name, UID: p.UID, Condition: corev1.PodCondition{
		Type: gate, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(o.Now),
	}}
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
