package instance

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
)

// leave brings a deleted VMI to its end. The finalizer is removed when
// the pod is gone or fenced, whether or not the handler works.
func leave(o Observed) scheduler.Plan {
	if !slices.Contains(o.VMI.Finalizers, vmi.Finalizer) {
		// Another finalizer keeps the VMI, or none; its pods are deleted with it.
		return scheduler.Plan{}
	}
	active := o.Pods.Active
	alive := active != nil && pod.Owned(active, o.VMI) && !over(active) && !fenced(o.Node)
	switch {
	case o.VMI.Status.Phase.Final() || !alive:
		return scheduler.Plan{Actions: []scheduler.Action{scheduler.RemoveFinalizer{}}}
	case active.DeletionTimestamp != nil:
		return nodeReadiness(o)
	}
	left := stopDue(o.VMI).Sub(o.Now)
	// No handler stops the guest of a VMI that cannot be decoded.
	if !handedOver(o.VMI) || isUnreadable(o) || left <= 0 {
		return deletePod(o)
	}
	p := nodeReadiness(o)
	if p.Recheck == 0 || p.Recheck > left {
		p.Recheck = left
	}
	return p
}

// stopDue is when the handler of a deleted VMI has had all the time that it may
// need.
func stopDue(v *vmi.VirtualMachineInstance) time.Time {
	return v.DeletionTimestamp.Add(v.GracePeriod() + stopDelay)
}

// deletePod deletes the active pod, and writes why it may not end.
func deletePod(o Observed) scheduler.Plan {
	plan := nodeReadiness(o)
	plan.Actions = append(deletion(o.Pods.Active), plan.Actions...)
	return plan
}

func deletion(p *corev1.Pod) []scheduler.Action {
	return []scheduler.Action{
		scheduler.DeletePod{Name: p.Name, UID: p.UID},
		scheduler.Emit{Finding: vmi.Finding{Reason: "SuccessfulDelete", Message: "Deleted virtual machine pod " + p.Name}},
	}
}
