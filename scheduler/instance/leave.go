package instance

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
)

// leave brings a deleted machine to its end. No finalizer waits for a process
// that is dead: that the pod is gone is enough.
func leave(o Observed) scheduler.Plan {
	if !slices.Contains(o.VMI.Finalizers, vmi.Finalizer) {
		// Somebody else keeps the machine, or nobody: the pod goes with it.
		return scheduler.Plan{}
	}
	alive := o.Pod != nil && pod.Owned(o.Pod, o.VMI) && !over(o.Pod) && (!handedOver(o) || ran(o))
	switch {
	case o.VMI.Status.Phase.Final() || !alive:
		return scheduler.Plan{Actions: []scheduler.Action{scheduler.RemoveFinalizer{}}}
	case o.Pod.DeletionTimestamp != nil:
		return scheduler.Plan{}
	case !handedOver(o):
		return deletePod(o)
	}
	if left := stopDue(o.VMI).Sub(o.Now); left > 0 {
		return scheduler.Plan{Recheck: left}
	}
	return deletePod(o)
}

// stopDue is when the handler of a deleted machine has had all the time that it
// may need.
func stopDue(v *vmi.VirtualMachineInstance) time.Time {
	return v.DeletionTimestamp.Add(defaults.Apply(v, defaults.Profile{}).GracePeriod() + stopDelay)
}

func deletePod(o Observed) scheduler.Plan {
	return scheduler.Plan{Actions: []scheduler.Action{
		scheduler.DeletePod{Name: o.Pod.Name, UID: o.Pod.UID},
		scheduler.Emit{Type: corev1.EventTypeNormal, Reason: "SuccessfulDelete", Message: "Deleted virtual machine pod " + o.Pod.Name},
	}}
}
