package instance

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
)

// formerDelay is how long a new VMI waits for the pod of an earlier one of its name
// before its status says so: usually that pod has just ended.
const formerDelay = 5 * time.Second

// Fenced reports whether nothing runs on the node any more: it does not exist, or
// an administrator says so by the taint out-of-service while it does not respond.
func (n Node) Fenced() bool { return fenced(n) }

// waitForFormer makes no pod as long as another guest of this name may run: both
// could write the same volumes.
func waitForFormer(o Observed) scheduler.Plan {
	if left := remaining(o, o.VMI.CreationTimestamp.Time, formerDelay); left > 0 && o.VMI.Status.Phase == vmi.PhaseUnset {
		return scheduler.Plan{Recheck: left}
	}
	p := o.Former[0]
	message := fmt.Sprintf("pod %s of an earlier VMI of this name exists, and its guest may still run; "+
		"this VMI starts when the pod has ended, which takes as long as its guest needs to power off", p.Name)
	if n := p.Spec.NodeName; n != "" {
		message += fmt.Sprintf("; if node %s does not respond, it starts when the node comes back, "+
			"or, after the node was powered off, when the Node is deleted or tainted %s=nodeshutdown:NoExecute", n, corev1.TaintNodeOutOfService)
	}
	plan := pending(o, vmi.Finding{Reason: PreviousPodExists, Message: message})
	plan.Recheck = nameDelay
	return plan
}
