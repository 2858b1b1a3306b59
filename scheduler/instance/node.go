package instance

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/vmi"
)

// Times that are waited before a condition says that something is not ready: what
// only restarts costs no writes. A node that does not report at all has been waited
// for by Kubernetes already.
const (
	// settleTime is for a node that reports itself as not ready, and for the
	// conditions of pods on a node that has come back.
	settleTime = 15 * time.Second
	// handlerTime is for virt-handler. Its pod may take 10 seconds to end when it is
	// replaced, and the next one pulls an image. It is well below a minute.
	handlerTime = 40 * time.Second
)

// fenced reports whether nothing runs on the node any more: it does not exist, or
// an administrator says so by the taint out-of-service while it does not respond.
func fenced(n Node) bool {
	if n.Name == "" {
		return false
	}
	return n.Object == nil || !nodeIsReady(n.Object) &&
		slices.ContainsFunc(n.Object.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService })
}

// unresponsive reports whether the node does not respond, or is gone.
func unresponsive(n Node) bool {
	return n.Name != "" && (n.Object == nil || !nodeIsReady(n.Object))
}

func nodeIsReady(n *corev1.Node) bool {
	c := nodeReady(n)
	return c != nil && c.Status == corev1.ConditionTrue
}

// nodeReady is the condition Ready of the node, or nil.
func nodeReady(n *corev1.Node) *corev1.NodeCondition {
	i := slices.IndexFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	if i < 0 {
		return nil
	}
	return &n.Status.Conditions[i]
}

// nodeNotReady is the check whether the node responds. A node without the
// condition has not reported yet.
func nodeNotReady(o Observed) (vmi.Finding, bool) {
	n := o.Node
	if n.Name == "" || n.Object == nil || nodeIsReady(n.Object) || nodeSettles(o) > 0 {
		return vmi.Finding{}, false
	}
	means := "the guest may still run there"
	if !handedOver(o.VMI) { // its launcher waits for the handler
		means = "no guest of this VMI runs there yet"
	}
	return vmi.Finding{Reason: vmi.ReasonNodeNotReady, Message: fmt.Sprintf("node %s is not ready, and %s; "+
		"if the node does not come back, power it off and then delete the Node or taint it %s=nodeshutdown:NoExecute, which ends the VMI",
		n.Name, means, corev1.TaintNodeOutOfService)}, true
}

// handlerNotReady is the check whether virt-handler works on the node. It has nothing to do
// for a VMI that was not handed over.
func handlerNotReady(o Observed) (vmi.Finding, bool) {
	n := o.Node
	if n.Name == "" || n.HandlerDown.IsZero() || handlerSettles(o) > 0 || !handedOver(o.VMI) {
		return vmi.Finding{}, false
	}
	if n.Handler == nil {
		return vmi.Finding{Reason: vmi.ReasonHandlerNotReady, Message: fmt.Sprintf("node %s has no pod of virt-handler, so the state of the guest is not known; "+
			"see the events of the DaemonSet virt-handler", n.Name)}, true
	}
	return vmi.Finding{Reason: vmi.ReasonHandlerNotReady, Message: fmt.Sprintf("pod %s/%s on node %s is not ready, so the state of the guest is not known; "+
		"see the events and the log of the pod", n.Handler.Namespace, n.Handler.Name, n.Name)}, true
}

// nodeSettles is how long a node that reports itself as not ready still has to
// become ready. 0: it is ready, or has had its time.
func nodeSettles(o Observed) time.Duration {
	if o.Node.Object == nil || reasonOfReady(o) == vmi.ReasonNodeNotReady {
		return 0
	}
	c := nodeReady(o.Node.Object)
	switch {
	case c == nil:
		return remaining(o, o.Node.Object.CreationTimestamp.Time, settleTime)
	case c.Status != corev1.ConditionFalse:
		return 0
	}
	return remaining(o, c.LastTransitionTime.Time, settleTime)
}

// handlerSettles is how long virt-handler still has to become ready. 0: it is
// ready, or has had its time. A node that comes back gives its handler time.
func handlerSettles(o Observed) time.Duration {
	if o.Node.HandlerDown.IsZero() || reasonOfReady(o) == vmi.ReasonHandlerNotReady {
		return 0
	}
	since := o.Node.HandlerDown
	if began := startOf(o.Node.Handler); began.After(since) && !began.After(o.Now) {
		since = began
	}
	return max(remaining(o, since, handlerTime), podSettles(o))
}

// startOf is when the container of the pod that runs was started: one that was
// installed, or replaced, may have waited for its image for minutes. Zero: none runs.
func startOf(p *corev1.Pod) time.Time {
	var last time.Time
	if p == nil {
		return last
	}
	for _, c := range p.Status.ContainerStatuses {
		if r := c.State.Running; r != nil && r.StartedAt.After(last) {
			last = r.StartedAt.Time
		}
	}
	return last
}

// podSettles is how long the conditions of pods on a node that has come back may
// still be those of the time when it was away. 0: they are new.
func podSettles(o Observed) time.Duration {
	if o.Node.Object == nil || !nodeIsReady(o.Node.Object) {
		return 0
	}
	return remaining(o, nodeReady(o.Node.Object).LastTransitionTime.Time, settleTime)
}

// remaining is what is left of the time that began then.
func remaining(o Observed, began time.Time, whole time.Duration) time.Duration {
	return min(max(began.Add(whole).Sub(o.Now), 0), whole)
}
