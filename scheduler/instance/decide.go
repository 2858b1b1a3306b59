package instance

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/internal/scheduler/launched"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
)

// Times that nothing waits longer than.
const (
	// reportDelay is how long the handler may take to report the end of a pod.
	reportDelay = 5 * time.Second
	// stopDelay is how long after the guest's grace period the pod of a deleted VMI
	// is left to a handler that does not answer.
	stopDelay = 30 * time.Second
	// leastRetry and mostRetry are the times between a pod that its node refuses
	// and the next.
	leastRetry = 5 * time.Second
	mostRetry  = 5 * time.Minute
	// endDelay is how long after the end of a VMI its launcher may run.
	endDelay = 30 * time.Second
	// nameDelay is when to check again whether a pod that has the name is gone.
	nameDelay = 10 * time.Second
)

// Decide says what is to be done. The most urgent situation comes first:
//
//	VMI                 active pod                what is done
//	has the finalizer,
//	and unguarded       any                       finalizer is removed
//	deleted, Succeeded  any                       finalizer is removed
//	deleted, Scheduled+ removed               Ready is Unknown, until the node's handler reports that nothing
//	                                              of the pod is left there, or the node is fenced
//	deleted, Scheduled+ ended                     left to a handler that works for 5 s; then finalizer is removed
//	deleted             none, ended, or fenced    finalizer is removed; before, what others keep is Failed or
//	                                              Succeeded; other pods that the VMI controls are deleted before
//	deleted, Failed     alive                     pod is deleted
//	deleted, Scheduling alive                     pod is deleted
//	deleted, Scheduled+ alive                     left to the handler; after its time the pod is deleted
//	not deleted or ended, with a pod              a finalizer that was removed is added again
//	ended               ended, or none            targets and stray pods are deleted
//	ended               alive                     the same; after 30 s the active pod is deleted
//	Failed, Succeeded   ended by Kubernetes       the reason is written, if it is another one
//	Failed, uncertain   ended, or fenced          Ready is False: the guest has ended
//	Scheduled+, or      removed                   Ready is Unknown, until the node's handler reports that nothing
//	  Failed, uncertain                           of the pod is left there; targets and stray pods are deleted
//	Scheduled+          removed, but fenced       Failed: NodeUnresponsive; targets and stray pods are deleted
//	Scheduled+          ended                     left to the handler for 5 s; then Succeeded or Failed,
//	                                              or nothing if its guest moved away; while a migration
//	                                              sends it, left to the handler of the target for 15 s
//	Scheduled+          alive, but fenced         Failed: NodeUnresponsive
//	Scheduled+          alive                     left to the handler; Ready by node and pod, the pod's readiness
//	                                              gate by whether the guest is paused; the gates of pods
//	                                              that it has left are closed before, and these pods are
//	                                              taken out of the status when they have ended
//	Scheduling          none                      Failed: it was there
//	new, Pending        none                      pod is created; or Pending with the reason,
//	                                              also while a pod of an earlier VMI of the name runs, or
//	                                              another VMI uses a claim that one of the two writes, or
//	                                              a network is not defined
//	before Scheduled    not the VMI's             Pending, until it is gone
//	before Scheduled    refused by its node       Pending with the reason; pod is deleted, to be created again
//	before Scheduled    ended                     Failed
//	before Scheduled    alive, but fenced         Failed: NodeUnresponsive
//	before Scheduled,   none, or alive            Synchronized is False: no pod is made, and none
//	  cannot be decoded                           is handed over
//	before Scheduled    runs on a node            Scheduled: handed over
//	before Scheduled    waits                     Scheduling, with the reason if there is one; without one, not
//	                                              in the first two seconds
//
// "Scheduled+" is Scheduled and what follows it, except the end. A pod is fenced
// if its node does not exist or is marked as out of service. A pod is removed that was on a
// node and does not exist: to remove it by force stops no process. A VMI is uncertain that
// failed while its launcher did not answer: see [vmi.VirtualMachineInstanceStatus.Uncertain]. A pod that is deleted
// is given its time: its launcher powers the guest off. A VMI is unguarded while
// Podvisor may be deleted under it.
func Decide(o Observed) scheduler.Plan { return keep(o, decide(o)) }

// keep puts the finalizer before the plan of a VMI that has a pod and no finalizer,
// as after an update without it: the guest must be off before the VMI is gone.
func keep(o Observed, p scheduler.Plan) scheduler.Plan {
	v, active := o.VMI, o.Pods.Active
	if o.Unguarded || v.DeletionTimestamp != nil || v.Status.Phase.Final() || active == nil || !ours(o, active) || slices.Contains(v.Finalizers, vmi.Finalizer) {
		return p
	}
	p.Actions = append([]scheduler.Action{scheduler.AddFinalizer{Finalizer: vmi.Finalizer}}, p.Actions...)
	return p
}

func decide(o Observed) scheduler.Plan {
	phase, active := o.VMI.Status.Phase, o.Pods.Active
	switch {
	case o.Unguarded && slices.Contains(o.VMI.Finalizers, vmi.Finalizer):
		return unguarded()
	case o.VMI.DeletionTimestamp != nil:
		return leave(o)
	case misnamed(o):
		return correct(o)
	case phase.Final():
		p := ended(o)
		p.Actions = append(p.Actions, leftState(o, false)...)
		if _, ok := o.VMI.Labels[vmi.MigrationTargetNodeLabel]; ok { // it ended while it moved
			p.Actions = append(p.Actions, relabelled(o)...)
		}
		return deleteOthers(o, p)
	case handedOver(o.VMI):
		return watch(o)
	case active == nil && phase == vmi.PhaseScheduling:
		return fail(o, podGone(o))
	case active == nil && isUnreadable(o):
		return refuse(o)
	case active == nil:
		return create(o)
	case !launched.Adoptable(active, o.VMI):
		return taken(o)
	case rejected(active):
		return again(o)
	case launched.Ended(active):
		return fail(o, tooEarly(active))
	case fenced(o.Node):
		return fail(o, nodeGone(o))
	case isUnreadable(o):
		return hold(o)
	case runs(active):
		return handOver(o)
	}
	return wait(o)
}

// watch leaves the VMI to virt-handler, and does what virt-handler cannot do: it
// ends a VMI whose pod or node is gone, and says why the VMI is not ready.
func watch(o Observed) scheduler.Plan {
	active := o.Pods.Active
	switch {
	case removed(o):
		return deleteOthers(o, awaitNode(o))
	case active == nil:
		return deleteOthers(o, fail(o, podGone(o)))
	case !launched.Ended(active) && fenced(o.Node):
		return fail(o, nodeGone(o))
	case !launched.Ended(active):
		p := readiness(o)
		if len(p.Actions) == 0 {
			p.Actions = claimsGrew(o).Actions
		}
		if len(p.Actions) == 0 {
			p.Actions = duplicates(o).Actions
		}
		if len(p.Actions) == 0 {
			p.Actions = left(o).Actions
		}
		if len(p.Actions) == 0 {
			p.Actions = requested(o).Actions
		}
		p.Actions = slices.Concat(p.Actions, opened(o), early(o), relabelled(o), inProgress(o), heldState(o))
		return p
	}
	e := endOf(active)
	if e.movedAway && leaving(o) {
		return scheduler.Plan{}
	}
	if left := switches(o, e.at); left > 0 && !e.succeeded {
		return scheduler.Plan{Recheck: left}
	}
	if left := e.at.Add(reportDelay).Sub(o.Now); left > 0 && !e.byNode && handlerReports(o) {
		return scheduler.Plan{Recheck: left}
	}
	if e.succeeded {
		return succeed(o, e)
	}
	return fail(o, e.Finding)
}

// ended deletes the active pod of a VMI that has ended if its launcher runs on, as
// one does that hung when virt-handler failed the VMI: nothing else ends its guest.
// A pod that has ended stays for its log.
func ended(o Observed) scheduler.Plan {
	active := o.Pods.Active
	switch {
	case removed(o):
		return awaitNode(o)
	case o.VMI.Status.Uncertain() && (active == nil || launched.Ended(active) || fenced(o.Node)):
		return certain(o)
	case active == nil || !ours(o, active) || launched.Ended(active) || active.DeletionTimestamp != nil || fenced(o.Node):
		return scheduler.Plan{}
	}
	if left := o.VMI.Status.PhaseSince(o.VMI.Status.Phase).Add(endDelay).Sub(o.Now); left > 0 {
		return scheduler.Plan{Recheck: left}
	}
	return scheduler.Plan{Actions: deletion(active)}
}

// deleteOthers puts the deletion of the pods besides the active one before the plan, if
// they are the VMI's and still do something: targets, and pods that were created by
// mistake, after the end.
func deleteOthers(o Observed, p scheduler.Plan) scheduler.Plan {
	var first []scheduler.Action
	for _, s := range slices.Concat(o.Pods.Stray, o.Pods.Targets) {
		if launched.MadeFor(s, o.VMI) && !launched.Ended(s) && s.DeletionTimestamp == nil {
			first = append(first, scheduler.DeletePod{Name: s.Name, UID: s.UID})
		}
	}
	p.Actions = append(first, p.Actions...)
	return p
}

// writeStatus writes the status of a VMI.
type writeStatus = scheduler.WriteStatus[*vmi.VirtualMachineInstance]

// write is the plan that makes the status what edit makes of it, and emits the
// events if the status changes. It is empty if nothing changes.
func write(o Observed, edit func(s *vmi.VirtualMachineInstanceStatus, now metav1.Time), events ...scheduler.Emit) scheduler.Plan {
	v := o.VMI.DeepCopy()
	edit(&v.Status, metav1.NewTime(o.Now))
	v.Status.Explain()
	if equality.Semantic.DeepEqual(v.Status, o.VMI.Status) {
		return scheduler.Plan{}
	}
	if v.Status.VirtualMachineRevisionName == "" {
		v.Status.VirtualMachineRevisionName = startRevision(v)
	}
	p := scheduler.Plan{Actions: []scheduler.Action{writeStatus{Object: v}}}
	for _, e := range events {
		p.Actions = append(p.Actions, e)
	}
	return p
}

// startRevision is the name of the revision of its VirtualMachine that the VMI was
// started from. Empty: it has none.
func startRevision(v *vmi.VirtualMachineInstance) string {
	ref := metav1.GetControllerOfNoCopy(v)
	if ref == nil || ref.Kind != vmi.VirtualMachines.Kind {
		return ""
	}
	generation := v.RevisionGeneration()
	if generation == 0 {
		return ""
	}
	return vmi.StartRevision(ref.UID, generation)
}
