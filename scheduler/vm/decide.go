package vm

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
)

// Decide says what is to be done.
func Decide(o Observed) scheduler.Plan {
	switch {
	case o.VM.DeletionTimestamp != nil:
		return leave(o)
	case o.Unguarded && hasFinalizer(o):
		return scheduler.Plan{Actions: []scheduler.Action{scheduler.RemoveFinalizer{Finalizer: vmi.VMFinalizer}}}
	case vmi.Unreadable(o.VM) != nil:
		return hold(o)
	case adoptable(o):
		return scheduler.Plan{Actions: []scheduler.Action{scheduler.AdoptInstance{Instance: o.VMI}}}
	}
	if left := causeSettles(o); left > 0 {
		return scheduler.Plan{Recheck: left}
	}
	z := size(o)
	n := next{requests: pending(o), failure: failures(o), sized: z, obstacle: z.fault}
	if o.VM.Spec.Strategy() == vmi.RunHalted && startsPaused(n.requests) {
		return scheduler.Plan{Actions: []scheduler.Action{scheduler.SetRunStrategy{From: vmi.RunHalted, To: vmi.RunAlways}}}
	}
	switch want(o, n.requests) {
	case start:
		return z.first(begin(o, n))
	case stop:
		return z.first(end(o, n))
	}
	return z.first(stay(o, n))
}

// next is what the status will say besides what the VMI is.
type next struct {
	requests []vmi.StateChangeRequest
	failure  *vmi.StartFailure
	// starts says that a VMI is wanted, and made that the plan makes it.
	starts, made bool
	// stops says that the VMI is to be deleted.
	stops bool
	// obstacle is why no VMI can be made. Nil: nothing is in the way.
	obstacle *vmi.Finding
	// sized is what becomes of the VM by what it names.
	sized sized
}

// begin makes the VMI, as soon as nothing is in the way.
func begin(o Observed, n next) scheduler.Plan {
	n.starts = true
	if left := waits(o, n.failure); left > 0 {
		p := write(o, n)
		p.Recheck = left
		return p
	}
	if n.obstacle != nil {
		return write(o, n)
	}
	if p, ok := provision(o, n); ok {
		return p
	}
	if n.obstacle = obstacle(o); n.obstacle != nil {
		return write(o, n)
	}
	r := kept(o, n.sized.spec)
	isNew := r == nil
	if isNew {
		var err error
		if r, err = startRevision(o.VM, n.sized.spec); err != nil {
			n.obstacle = &vmi.Finding{Reason: InvalidSpec, Message: vmi.FaultText(err)}
			return write(o, n)
		}
	}
	v := Instance(n.sized.vm, o.Profile, o.Bindings)
	if r.Revision != o.VM.Generation {
		v.Annotations[vmi.StartRevisionAnnotation] = strconv.FormatInt(r.Revision, 10)
	}
	if startsPaused(n.requests) {
		v.Spec.StartStrategy = new(vmi.StartPaused)
	}
	var p scheduler.Plan
	if !o.Unguarded && !hasFinalizer(o) {
		p.Actions = append(p.Actions, scheduler.AddFinalizer{Finalizer: vmi.VMFinalizer})
	}
	if isNew {
		p.Actions = append(p.Actions, scheduler.CreateRevision{Revision: r})
	}
	p.Actions = append(p.Actions, scheduler.CreateInstance{Instance: v}, scheduler.Emit{Finding: vmi.Finding{
		Reason: "SuccessfulCreate", Message: fmt.Sprintf("Started the virtual machine by creating the new virtual machine instance %s", v.Name),
	}})
	n.made = true
	if first(n.requests) == vmi.StartRequest {
		n.requests = n.requests[1:]
	}
	w := write(o, n)
	p.Actions, p.Recheck = append(p.Actions, w.Actions...), w.Recheck
	return p
}

// obstacle is why no VMI can be made although one is wanted.
func obstacle(o Observed) *vmi.Finding {
	if o.VM.Spec.Template == nil {
		return &vmi.Finding{Reason: InvalidSpec, Message: "spec.template: describe the VMI"}
	}
	if o.VMI != nil { // its own VMI is not absent
		return &vmi.Finding{Reason: NameTaken, Message: fmt.Sprintf(
			"VirtualMachineInstance %s does not belong to this VirtualMachine, which needs a VMI of this name; delete it, or wait until it is deleted", o.VMI.Name)}
	}
	return o.Refusal
}

// end deletes the VMI. What must outlive it, the count of failed starts and a request
// for the next start, is written before.
func end(o Observed, n next) scheduler.Plan {
	n.stops = true
	v := o.own()
	if o.VM.Spec.Strategy() == vmi.RunRerunOnFailure && o.state() == failed && v.DeletionTimestamp == nil && len(n.requests) == 0 {
		n.requests = []vmi.StateChangeRequest{{Action: vmi.StartRequest}}
	}
	p := write(o, n)
	if v.DeletionTimestamp == nil {
		p.Actions = append(p.Actions, scheduler.DeleteInstance{Instance: v}, scheduler.Emit{Finding: vmi.Finding{
			Reason: "SuccessfulDelete", Message: fmt.Sprintf("Stopped the virtual machine by deleting the virtual machine instance %s", v.Name),
		}})
	}
	return p
}

// stay leaves the VMI as it is.
func stay(o Observed, n next) scheduler.Plan {
	p := write(o, n)
	if v := o.own(); v != nil {
		p.Actions = append(p.Actions, follow(o, v)...)
	}
	return p
}

// leave deletes the VMI of a VM that is being deleted, unless the deletion is to
// leave it, and then removes the finalizer of the VM. It waits for nothing but the VMI,
// whose own finalizer is removed once its guest is off or its node is gone, and the
// garbage collector, which a VM waits for anyway as long as it has its finalizer.
func leave(o Observed) scheduler.Plan {
	v, orphans := o.own(), slices.Contains(o.VM.Finalizers, metav1.FinalizerOrphanDependents)
	if v == nil {
		if !hasFinalizer(o) || orphans { // the garbage collector is not done
			return scheduler.Plan{}
		}
		return scheduler.Plan{Actions: append([]scheduler.Action{scheduler.RemoveFinalizer{Finalizer: vmi.VMFinalizer}}, forget(o)...)}
	}
	stops := v.DeletionTimestamp == nil && !orphans
	p := write(o, next{requests: o.VM.Status.StateChangeRequests, failure: o.VM.Status.StartFailure, stops: stops})
	if stops {
		p.Actions = append(p.Actions, scheduler.DeleteInstance{Instance: v})
	}
	return p
}

// adoptable says that the VMI of the name has no controller, as after the deletion of
// a VM of the name that left it.
func adoptable(o Observed) bool {
	return o.VMI != nil && o.VMI.DeletionTimestamp == nil && metav1.GetControllerOfNoCopy(o.VMI) == nil
}

func hasFinalizer(o Observed) bool { return slices.Contains(o.VM.Finalizers, vmi.VMFinalizer) }

// hold leaves the VMI of a VM that cannot be decoded as it is, and says so.
func hold(o Observed) scheduler.Plan {
	var e *vmi.UnreadableError
	errors.As(vmi.Unreadable(o.VM), &e)
	f := vmi.Finding{Reason: vmi.ReasonUnreadableSpec, Message: e.Faults() + ": what is stored cannot be decoded, so that the VM is neither started nor stopped; " +
		"correct its spec, or install a version of Podvisor that can decode it"}
	v := o.VM.DeepCopy()
	v.Status.SetCondition(vmi.Condition{Type: vmi.ConditionFailure, Status: corev1.ConditionTrue, Reason: f.Reason, Message: f.Message}, metav1.NewTime(o.Now))
	v.Status.Reason = f.Reason
	return written(o, v)
}
