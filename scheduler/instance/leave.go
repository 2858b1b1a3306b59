package instance

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/internal/scheduler/launched"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
)

// leave brings a deleted VMI to its end. The finalizer is removed when every pod
// whose guest may run has ended or is fenced, whether or not the handler works. A pod that
// was removed before it ended is its node's to answer for. It does not matter
// how the VMI was deleted: to orphan a pod takes its owner reference, and not
// what the VMI's status and the pod's labels say.
func leave(o Observed) scheduler.Plan {
	if !slices.Contains(o.VMI.Finalizers, vmi.Finalizer) {
		// Another finalizer keeps the VMI, or none; its pods are deleted with it.
		return scheduler.Plan{}
	}
	active := o.Pods.Active
	switch {
	case removed(o):
		return deleteOthers(o, awaitNode(o))
	case o.VMI.Status.Phase == vmi.PhaseSucceeded || active == nil || !ours(o, active) || launched.Ended(active) || fenced(o.Node):
		return release(o)
	case active.DeletionTimestamp != nil && o.VMI.Status.Phase.Final():
		return scheduler.Plan{}
	case active.DeletionTimestamp != nil:
		return nodeReadiness(o)
	case o.VMI.Status.Phase.Final():
		return scheduler.Plan{Actions: deletion(active)}
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

// ours reports whether the pod's guest is the VMI's.
func ours(o Observed, p *corev1.Pod) bool {
	_, active := o.VMI.Status.ActivePods[p.UID]
	return active || launched.MadeFor(p, o.VMI)
}

// release removes the finalizer when no other pod that the VMI controls may run. A
// VMI that others keep is in its last phase before.
func release(o Observed) scheduler.Plan {
	var p scheduler.Plan
	if others := controlled(o); len(others) > 0 {
		for _, other := range others {
			if other.DeletionTimestamp == nil {
				p.Actions = append(p.Actions, scheduler.DeletePod{Name: other.Name, UID: other.UID})
			}
		}
		return p
	}
	deleted := scheduler.Emit{Finding: vmi.Finding{Reason: "Deleted", Message: "the VMI was deleted before its guest ran"}}
	remove := []scheduler.Action{scheduler.RemoveFinalizer{Finalizer: vmi.Finalizer}}
	switch kept := len(o.VMI.Finalizers) > 1; {
	case o.VMI.Status.Phase.Final():
	case !handedOver(o.VMI) && kept:
		p = finish(o, vmi.PhaseFailed, vmi.Finding{Reason: string(protocol.Cancelled), Message: deleted.Message}, deleted)
	case !handedOver(o.VMI):
		remove = append(remove, deleted)
	case kept:
		if p = watch(o); p.Recheck > 0 {
			return p // the handler reports
		}
	default:
		if left := reports(o); left > 0 {
			return scheduler.Plan{Recheck: left}
		}
		// A handler that reports meanwhile makes the removal a conflict.
		deleted.Message = unreportedEnd(o)
		remove = append(remove, deleted)
	}
	p.Actions = slices.Concat(leftState(o, true), p.Actions, remove)
	return p
}

// unreportedEnd is how a deleted VMI ended whose handler has not reported it.
func unreportedEnd(o Observed) string {
	active := o.Pods.Active
	switch {
	case active == nil || !ours(o, active):
		return podGone(o).Message
	case !launched.Ended(active):
		return nodeGone(o).Message
	}
	e := endOf(active)
	if e.succeeded {
		return poweredOff
	}
	return cmp.Or(e.Message, "the pod of the VMI has ended")
}

// reports is how long the handler may still take to report the end of a pod whose VMI is
// deleted, if one is there that does. Most do in a moment: a VMI that is gone before has no
// event of its end, and a finalizer that is removed beside the report is a conflict.
func reports(o Observed) time.Duration {
	active := o.Pods.Active
	if o.Node.Handler == nil || !handlerReports(o) || fenced(o.Node) || isUnreadable(o) || active == nil || !launched.Ended(active) {
		return 0
	}
	e := endOf(active)
	left := e.at.Add(reportDelay).Sub(o.Now)
	if e.byNode || e.movedAway || left > reportDelay { // the clock of the node may be another one
		return 0
	}
	return max(left, 0)
}

// controlled are the pods besides the active one that the VMI controls and that may
// run.
func controlled(o Observed) []*corev1.Pod {
	return slices.DeleteFunc(slices.Concat(o.Pods.Stray, o.Pods.Targets), func(p *corev1.Pod) bool {
		return !launched.Owned(p, o.VMI) || launched.Ended(p) || p.Spec.NodeName == o.Node.Name && fenced(o.Node)
	})
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
