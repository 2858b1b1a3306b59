package instance

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
)

// isUnreadable reports whether the VMI is stored and cannot be decoded. Its spec is
// not known then, and nothing is begun by it: no pod is made, and none is handed
// over. All that needs no spec goes on: a guest that runs is left alone, an end is
// reported, and a VMI that is deleted ends with its pod.
func isUnreadable(o Observed) bool { return vmi.Unreadable(o.VMI) != nil }

// refuse says why no pod is made.
func refuse(o Observed) scheduler.Plan { return pending(o, vmi.UnreadableFinding(o.VMI)) }

// hold says why the pod is not handed over.
func hold(o Observed) scheduler.Plan {
	f := vmi.UnreadableFinding(o.VMI)
	return write(o, func(s *vmi.VirtualMachineInstanceStatus, now metav1.Time) {
		s.SetCondition(notSynchronized(f), now)
	}, transition(o, vmi.ConditionSynchronized, f)...)
}
