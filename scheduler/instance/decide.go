package instance

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
)

// Observed is everything that a decision depends on.
type Observed struct {
	// VMI is the machine as it is stored. Defaults need not be applied.
	VMI *vmi.VirtualMachineInstance
	// Pod is the pod that has the name of the machine's pod. Nil: there is none.
	Pod *corev1.Pod
	// Config is how pods are rendered.
	Config pod.Config
	// Refusal is why the pod of the last plan was not accepted. Nil: no pod was
	// refused since the machine was observed.
	Refusal *scheduler.Finding
	// Now is the present time.
	Now time.Time
}

// Times that nothing waits longer than.
const (
	// reportDelay is how long the handler may take to report the end of a pod.
	reportDelay = 5 * time.Second
	// stopDelay is how long after the guest's grace period a deleted machine's
	// pod is left to a handler that does not answer.
	stopDelay = 30 * time.Second
	// leastRetry and mostRetry are the times between a pod that its node refuses
	// and the next.
	leastRetry = 5 * time.Second
	mostRetry  = 5 * time.Minute
	// nameDelay is when to look again whether a pod that took the name is gone.
	nameDelay = 10 * time.Second
)

// Decide says what is to be done. The most urgent situation comes first:
//
//	machine             pod                       what is done
//	deleted, ended      any                       finalizer goes
//	deleted             none, or ended            finalizer goes
//	deleted, Scheduling alive                     pod is deleted
//	deleted, Scheduled+ alive                     the handler's turn; pod is deleted if nobody answers
//	ended               not the one that ran      pod is deleted
//	Scheduled+          none, or another          Failed
//	Scheduled+          ended                     the handler's turn, for 5 s; then Succeeded or Failed
//	Scheduled+          alive                     nothing: the handler's turn
//	Scheduling          none                      Failed: it was there
//	new, Pending        none                      pod is made, Scheduling; or Pending with the reason
//	before Scheduled    not the machine's         Pending, until it is gone
//	before Scheduled    refused by its node       Pending with the reason; pod is deleted, to be made again
//	before Scheduled    ended                     Failed
//	before Scheduled    runs on a node            Scheduled: handed over
//	before Scheduled    waits                     Scheduling, with the reason if there is one
//
// "Scheduled+" is Scheduled and what follows it, except the end.
func Decide(o Observed) scheduler.Plan {
	phase := o.VMI.Status.Phase
	switch {
	case o.VMI.DeletionTimestamp != nil:
		return leave(o)
	case phase.Final():
		return ended(o)
	case handedOver(o):
		return watch(o)
	case o.Pod == nil && phase == vmi.Scheduling:
		return fail(o, podGone)
	case o.Pod == nil:
		return create(o)
	case !pod.Owned(o.Pod, o.VMI):
		return taken(o)
	case rejected(o.Pod):
		return again(o)
	case over(o.Pod):
		return fail(o, tooEarly(o.Pod))
	case runs(o.Pod):
		return handOver(o)
	}
	return wait(o)
}

// handedOver says that the handler writes the machine's status.
func handedOver(o Observed) bool {
	switch o.VMI.Status.Phase {
	case vmi.Scheduled, vmi.Running, vmi.Unknown:
		return true
	}
	return false
}

// watch lets the handler do its work, and ends a machine whose handler cannot
// report the end any more.
func watch(o Observed) scheduler.Plan {
	switch {
	case o.Pod == nil:
		return fail(o, podGone)
	case !ran(o):
		return stray(o, fail(o, podGone))
	case !over(o.Pod):
		return scheduler.Plan{}
	}
	e := endOf(o.Pod)
	if left := e.at.Add(reportDelay).Sub(o.Now); left > 0 {
		return scheduler.Plan{Recheck: left}
	}
	if e.succeeded {
		return succeed(o)
	}
	return fail(o, e.Finding)
}

// ended does nothing more for the machine, except that a pod that was made by
// mistake, after the end, must not stay. The pod that ran stays, for its log.
func ended(o Observed) scheduler.Plan {
	if o.Pod == nil || ran(o) || len(o.VMI.Status.ActivePods) == 0 {
		return scheduler.Plan{}
	}
	return stray(o, scheduler.Plan{})
}

// ran says that the pod is the one that was handed over.
func ran(o Observed) bool {
	_, ok := o.VMI.Status.ActivePods[o.Pod.UID]
	return ok
}

// stray puts the deletion of the pod before the plan, if the pod is the machine's
// and still does something.
func stray(o Observed, p scheduler.Plan) scheduler.Plan {
	if pod.Owned(o.Pod, o.VMI) && !over(o.Pod) && o.Pod.DeletionTimestamp == nil {
		p.Actions = append([]scheduler.Action{scheduler.DeletePod{Name: o.Pod.Name, UID: o.Pod.UID}}, p.Actions...)
	}
	return p
}

// write is the plan that makes the status what edit makes of it, and tells of
// the event if the status changes. It is empty if nothing changes.
func write(o Observed, edit func(s *vmi.VirtualMachineInstanceStatus, now metav1.Time), events ...scheduler.Emit) scheduler.Plan {
	s := o.VMI.Status.DeepCopy()
	edit(s, metav1.NewTime(o.Now))
	if equality.Semantic.DeepEqual(*s, o.VMI.Status) {
		return scheduler.Plan{}
	}
	p := scheduler.Plan{Actions: []scheduler.Action{scheduler.WriteStatus{Status: *s}}}
	for _, e := range events {
		p.Actions = append(p.Actions, e)
	}
	return p
}
