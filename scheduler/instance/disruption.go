package instance

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/internal/scheduler/launched"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
)

// endByNode is how Kubernetes ended a pod, or what ended it with the node. The
// launcher and virt-handler can only see what followed.
func endByNode(p *corev1.Pod) (vmi.Finding, bool) {
	node, s := p.Spec.NodeName, launched.Compute(p)
	switch {
	case nodeLost(p):
		return vmi.Finding{Reason: NodeUnresponsive, Message: "the node of the VMI's pod does not respond"}, true
	case s != nil && s.State.Terminated != nil && lost(s.State.Terminated):
		return vmi.Finding{Reason: NodeRestarted, Message: fmt.Sprintf("node %s was restarted, or what runs its containers, which ended the guest", node)}, true
	case s != nil && s.State.Terminated != nil && s.State.Terminated.Reason == OOMKilled:
		return vmi.Finding{Reason: OOMKilled, Message: fmt.Sprintf("the kernel of node %s killed the pod of the VMI, "+
			"which used more memory than its limit or than the node has: give the VMI more memory, or run less on the node", node)}, true
	case p.Status.Reason == notAdmitted:
		return vmi.Finding{Reason: NodeRestarted, Message: fmt.Sprintf("node %s was restarted, which ended the guest, and does not start its pod again: %s",
			node, p.Status.Message)}, true
	case p.Status.Reason == Evicted:
		return vmi.Finding{Reason: Evicted, Message: fmt.Sprintf("node %s evicted the pod of the VMI: %s", node, strings.TrimSpace(p.Status.Message))}, true
	case p.Status.Reason != "":
		return vmi.Finding{Reason: p.Status.Reason, Message: p.Status.Message}, true
	}
	return vmi.Finding{}, false
}

// lost reports whether the container runtime, or the kubelet, did not find the
// container any more when it was started: as containerd says it, and as the kubelet.
func lost(t *corev1.ContainerStateTerminated) bool {
	return t.Reason == "Unknown" && t.ExitCode == 255 || t.Reason == notFound
}

// notFound is the reason by which the kubelet says that it does not find a container.
const notFound = "ContainerStatusUnknown"

// disruption is why Kubernetes ends a pod that works, or that the pod was deleted.
func disruption(p *corev1.Pod) (vmi.Finding, bool) {
	if f, ok := disruptionTarget(p); ok {
		return f, true
	}
	return vmi.Finding{Reason: PodDeleted, Message: "the pod of the VMI was deleted"}, p.DeletionTimestamp != nil
}

// disruptedEnd is how a pod ended that was disrupted before, at that time. It is false if
// the end has another cause. Zero: the time of the end is not known.
func disruptedEnd(p *corev1.Pod, at time.Time, e protocol.End) (vmi.Finding, bool) {
	f, ok := disruption(p)
	if !ok || !at.IsZero() && disruptedAt(p).After(at) {
		return vmi.Finding{}, false
	}
	return e.DisruptedBy(f)
}

// disruptedAt is when the pod was disrupted, in whole seconds. Zero: it is not known.
func disruptedAt(p *corev1.Pod) time.Time {
	if i := targetCondition(p); i >= 0 {
		return p.Status.Conditions[i].LastTransitionTime.Time
	}
	if p.DeletionTimestamp == nil {
		return time.Time{}
	}
	at := p.DeletionTimestamp.Time
	if s := p.DeletionGracePeriodSeconds; s != nil {
		at = at.Add(-time.Duration(*s) * time.Second)
	}
	return at
}

func targetCondition(p *corev1.Pod) int {
	return slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue
	})
}

// disruptionTarget is why Kubernetes ends a pod that works, as it says itself.
func disruptionTarget(p *corev1.Pod) (vmi.Finding, bool) {
	i := targetCondition(p)
	if i < 0 {
		return vmi.Finding{}, false
	}
	c := p.Status.Conditions[i]
	if c.Reason == corev1.PodReasonPreemptionByScheduler {
		return vmi.Finding{Reason: Preempted, Message: fmt.Sprintf("the pod of the VMI makes room for another one on node %s (%s)", p.Spec.NodeName, c.Message)}, true
	}
	return vmi.Finding{Reason: Evicted, Message: fmt.Sprintf("the pod of the VMI is evicted from node %s (%s)", p.Spec.NodeName, c.Message)}, true
}

// misnamed reports whether virt-handler, which knows only what the launcher saw, has
// given another reason to a VMI whose pod Kubernetes ended.
func misnamed(o Observed) bool {
	_, ok := trueEnd(o)
	return ok
}

// correct writes why Kubernetes ended the pod.
func correct(o Observed) scheduler.Plan {
	f, _ := trueEnd(o)
	return write(o, func(s *vmi.VirtualMachineInstanceStatus, now metav1.Time) {
		s.Reason = f.Reason
		s.SetCondition(notReady(vmi.ReasonGuestNotRunning, f.Message), now)
	}, scheduler.Emit{Warning: true, Finding: f})
}

// trueEnd is why a VMI ended, if its status has another reason, or one without its cause.
func trueEnd(o Observed) (vmi.Finding, bool) {
	s := &o.VMI.Status
	said := protocol.End{Reason: protocol.EndReason(s.Reason)}
	if c := s.Condition(vmi.ConditionReady); c != nil {
		said.Message = c.Message
	}
	rest, vague := s.DisruptionUnknown()
	if vague {
		said = protocol.End{Reason: protocol.Killed, Message: rest} // whatever it was: it was asked to
	}
	p := o.Pods.Active
	if p == nil && vague {
		p = o.Pods.Removed
	}
	if !s.Phase.Final() || p == nil || s.ActivePods[p.UID] == "" {
		return vmi.Finding{}, false
	}
	if e := endOf(p); s.Phase == vmi.PhaseFailed && e.byNode && !e.at.After(o.VMI.Status.PhaseSince(o.VMI.Status.Phase).Add(reportDelay)) {
		return e.Finding, vague || s.Reason != e.Reason
	}
	f, ok := disruptedEnd(p, o.VMI.Status.PhaseSince(o.VMI.Status.Phase), said)
	if !ok && vague && unhealthy(o, p) {
		f, ok = said.DisruptedBy(vmi.Finding{Reason: LivenessProbeFailed, Message: "the liveness probe of the guest failed"})
	}
	return f, ok && (vague || s.Reason != f.Reason)
}

// unhealthy reports whether the VMI's pod, which was ended from outside, was ended since its
// liveness probe failed, which Kubernetes says in events alone: there is such a probe, and
// the pod has ended without having been deleted or disrupted before. A pod whose launcher
// outlives the VMI is deleted after it: see ended.
func unhealthy(o Observed, p *corev1.Pod) bool {
	_, other := disruption(p)
	other = other && !disruptedAt(p).After(o.VMI.Status.PhaseSince(o.VMI.Status.Phase).Add(reportDelay)) // the clock of the node may be another one
	return launched.Ended(p) && !other && o.VMI.Spec.LivenessProbe != nil
}

// nodeLost reports whether Kubernetes ended the pod because of its node.
func nodeLost(p *corev1.Pod) bool {
	if p.Status.Reason == "NodeLost" {
		return true
	}
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue && c.Reason == "DeletionByPodGC"
	})
}
