package handler

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// lookPeriod is the time between two looks at what is left of a pod that was removed, or whose
// VMI is gone.
const lookPeriod = time.Second

// reasonPodGone is the reason of a VMI that failed since its pod was removed, as
// virt-controller has it of a pod that no guest ran in.
const reasonPodGone = "PodGone"

// isRemoved says that the API server does not have the pod any more, which virt-controller
// has written: a handler reads no pods.
func isRemoved(o Observed) bool {
	return o.Instance != nil && o.Pod.UID != "" && o.Pod.Role != vmi.RoleTarget && o.Instance.Status.PodRemoved()
}

// removed reports the end of a VMI whose pod was removed when nothing of it is left on this
// node, and not before: that permits another guest to use its volumes. Until then the guest
// is treated as any other, but for reports about a launcher that is being ended.
func removed(o Observed) Plan {
	p, s := Plan{}, o.Session
	silent := s != nil && (s.State == nil || s.State.Phase == protocol.Ended)
	switch {
	case o.NothingLeft && (s == nil || silent):
		return gone(o)
	case !handedOver(o.Instance):
		p = leave(o)
	case !silent:
		p = decide(o)
	}
	p.recheck(lookPeriod)
	return p
}

// gone is the end of a VMI nothing of whose pod is left.
func gone(o Observed) Plan {
	p := Plan{}
	f := vmi.Finding{Reason: reasonPodGone, Message: fmt.Sprintf("the pod of the VMI was removed, and nothing of it is left on node %s", o.Node)}
	if !handedOver(o.Instance) { // it has failed, for a reason that stays
		p.Status = o.Instance.Status.DeepCopy()
		p.Status.SetCondition(notReady(vmi.ReasonGuestNotRunning, f.Message), metav1.NewTime(o.Now))
		return p
	}
	if s := o.Session; s != nil && s.State != nil {
		p.ended(o, s.State.End)
		return p
	}
	if d, known := o.Instance.Status.Disruption(); known && d.Reason != vmi.ReasonPodDeleted {
		f = vmi.Finding{Reason: d.Reason, Message: d.Message + "; how the guest ended is not known"}
	}
	p.finish(o, vmi.PhaseFailed, f)
	return p
}
