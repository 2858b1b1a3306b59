package instance

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
)

// removed reports whether the guest of the VMI may run in a pod that does not exist any
// more. Whoever may delete pods can remove one at once, whatever runs in it. The VMI stays
// then, and with it its name and its claims, until its node's handler reports that nothing
// of the pod is left there, or the node is fenced. The handler reports by writing the end of
// the VMI: so the fact is in the API server, and outlasts each process.
//
// A VMI that was not handed over has no guest: its launcher waits for the handler.
func removed(o Observed) bool {
	s := &o.VMI.Status
	return o.Pods.Active == nil && s.NodeName != "" && !fenced(o.Node) && (handedOver(o.VMI) || s.Uncertain()) &&
		slices.Contains(slices.Collect(maps.Values(s.ActivePods)), s.NodeName)
}

// awaitNode writes that the pod was removed, by which the node's handler knows that it is
// to look, and what the report waits for. An event says it where only people can help.
func awaitNode(o Observed) scheduler.Plan {
	f, alarming := unreported(o)
	var events []scheduler.Emit
	if c := o.VMI.Status.Condition(vmi.ConditionReady); alarming && (!o.VMI.Status.PodRemoved() || c.Message != f.Message) {
		events = []scheduler.Emit{{Warning: true, Finding: f}}
	}
	p := write(o, func(s *vmi.VirtualMachineInstanceStatus, now metav1.Time) {
		s.SetCondition(vmi.Condition{Type: vmi.ConditionReady, Status: corev1.ConditionUnknown, Reason: f.Reason, Message: f.Message}, now)
	}, events...)
	p.Recheck = settles(o)
	return p
}

// unreported is why it is not known whether anything of the pod is left, and whether that
// takes more than a moment.
func unreported(o Observed) (f vmi.Finding, alarming bool) {
	const begin = "the pod of the VMI was removed before its guest was known to have ended"
	f.Reason = vmi.ReasonPodRemoved
	switch n := o.Node.Name; {
	case unresponsive(o.Node):
		f.Message = fmt.Sprintf("%s, and node %s is not ready: the guest may still run there, and no other one is started; the VMI ends when the node comes back, "+
			"or, after the node was powered off, when the Node is deleted or tainted %s=nodeshutdown:NoExecute", begin, n, corev1.TaintNodeOutOfService)
		return f, true
	case !handlerReports(o) && handlerSettles(o) == 0:
		f.Message = fmt.Sprintf("%s: virt-handler is to report that nothing of it is left on node %s, and is not ready there; "+
			"see the events of the DaemonSet virt-handler and its pods", begin, n)
		return f, true
	default:
		f.Message = fmt.Sprintf("%s: virt-handler is to report that nothing of it is left on node %s", begin, n)
		return f, false
	}
}

// handlerReports says that virt-handler works on the node, as far as that is observed.
func handlerReports(o Observed) bool { return o.Node.HandlerDown.IsZero() }

// certain writes of a VMI that failed while its launcher did not answer that its guest has
// ended since: its pod has, or its node is fenced.
func certain(o Observed) scheduler.Plan {
	return write(o, func(s *vmi.VirtualMachineInstanceStatus, now metav1.Time) {
		message := ""
		if c := s.Condition(vmi.ConditionReady); c != nil && !s.PodRemoved() {
			message = c.Message
		}
		if message == "" {
			message = podGone(o).Message
		}
		s.SetCondition(notReady(vmi.ReasonGuestNotRunning, message), now)
	})
}
