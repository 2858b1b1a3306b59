package vm

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
)

// own are the conditions that are the VM's and not copied from its VMI.
var own = []vmi.ConditionType{vmi.ConditionReady, vmi.ConditionFailure, vmi.ConditionRestartRequired, vmi.ConditionManualRecoveryRequired}

// write is the plan that makes the status say what is observed and what is next. It
// is empty if the status says so already.
func write(o Observed, n next) scheduler.Plan {
	v := o.VM.DeepCopy()
	describe(o, n, &v.Status)
	return written(o, v, n.obstacle)
}

// written is the plan that writes the status of v, with an event if an obstacle is new.
func written(o Observed, v *vmi.VirtualMachine, obstacle *vmi.Finding) scheduler.Plan {
	if equality.Semantic.DeepEqual(v.Status, o.VM.Status) {
		return scheduler.Plan{}
	}
	p := scheduler.Plan{Actions: []scheduler.Action{scheduler.WriteStatus[*vmi.VirtualMachine]{Object: v}}}
	if obstacle != nil && o.VM.Status.Condition(vmi.ConditionFailure) == nil {
		p.Actions = append(p.Actions, scheduler.Emit{Warning: true, Finding: *obstacle})
	}
	return p
}

func describe(o Observed, n next, s *vmi.VirtualMachineStatus) {
	i := o.own()
	s.Created = i != nil || n.made
	s.StateChangeRequests, s.StartFailure = n.requests, n.failure
	if len(n.requests) == 0 {
		s.StateChangeRequests = nil
	}
	if o.VM.DeletionTimestamp == nil {
		s.DesiredGeneration = o.VM.Generation
		if !n.starts || n.made { // a strategy that is to start the VM is acted upon when it has
			s.RunStrategy = o.VM.Spec.Strategy()
		}
	}
	s.ObservedGeneration = observed(o, n)
	conditions(o, n, s)
	s.Ready = isTrue(s.Condition(vmi.ConditionReady))
	s.PrintableStatus = printable(o, n)
}

// observed is the generation of the spec that the VMI has, or will have.
func observed(o Observed, n next) int64 {
	i := o.own()
	switch {
	case i == nil:
		return o.VM.Generation
	case sameTemplate(o, i):
		return o.VM.Generation
	case vmi.StartGeneration(i) != 0:
		return vmi.StartGeneration(i)
	}
	return o.VM.Status.ObservedGeneration
}

// conditions copies those of the VMI, and sets the VM's own.
func conditions(o Observed, n next, s *vmi.VirtualMachineStatus) {
	now := metav1.NewTime(o.Now)
	if !stopping(o, n) { // while it ends, the conditions say nothing more
		mirror(o.own(), s, now)
	}
	s.SetCondition(ready(o, n), now)
	failure(n, s, now)
	restart(o, s, now)
}

// mirror makes the conditions that are not the VM's own those of the VMI.
func mirror(i *vmi.VirtualMachineInstance, s *vmi.VirtualMachineStatus, now metav1.Time) {
	var copied []vmi.Condition
	if i != nil {
		copied = slices.DeleteFunc(slices.Clone(i.Status.Conditions), func(c vmi.Condition) bool { return slices.Contains(own, c.Type) })
	}
	for _, c := range slices.Clone(s.Conditions) {
		gone := !slices.ContainsFunc(copied, func(x vmi.Condition) bool { return x.Type == c.Type })
		if gone && !slices.Contains(own, c.Type) {
			s.RemoveCondition(c.Type)
		}
	}
	for _, c := range copied {
		s.SetCondition(c, now)
	}
}

// ready is the VMI's own condition Ready. As long as a start or a stop only takes its
// time, it says just that, so that neither costs a write for each of its steps.
func ready(o Observed, n next) vmi.Condition {
	c := vmi.Condition{Type: vmi.ConditionReady, Status: corev1.ConditionFalse}
	i := o.own()
	switch {
	case n.made || i != nil && printable(o, n) == vmi.StatusStarting:
		c.Reason, c.Message = vmi.ReasonGuestNotRunning, "the guest does not run yet"
	case stopping(o, n):
		c.Reason, c.Message = vmi.ReasonGuestNotRunning, "the VMI is being deleted"
	case i == nil:
		c.Reason, c.Message = ReasonInstanceNotExists, "the VM has no VMI"
	default:
		if r := i.Status.Condition(vmi.ConditionReady); r != nil {
			c.Status, c.Reason, c.Message = r.Status, r.Reason, r.Message
		}
	}
	return c
}

// ReasonInstanceNotExists is the reason of the condition Ready of a VM without a VMI.
const ReasonInstanceNotExists = "VMINotExists"

func failure(n next, s *vmi.VirtualMachineStatus, now metav1.Time) {
	if n.obstacle == nil {
		s.RemoveCondition(vmi.ConditionFailure)
		return
	}
	s.SetCondition(vmi.Condition{Type: vmi.ConditionFailure, Status: corev1.ConditionTrue, Reason: n.obstacle.Reason, Message: n.obstacle.Message}, now)
}

// restart says whether a change of the template waits for the next start.
func restart(o Observed, s *vmi.VirtualMachineStatus, now metav1.Time) {
	i := o.own()
	if i == nil || i.Status.Phase.Final() {
		s.RemoveCondition(vmi.ConditionRestartRequired)
		return
	}
	was, is, ok := templates(o, i)
	if !ok {
		return // what it was started from is not known, or not yet
	}
	live := o.LiveUpdate && isTrue(i.Status.Condition(vmi.ConditionLiveMigratable))
	if !restartRequired(was, is, live) {
		s.RemoveCondition(vmi.ConditionRestartRequired)
		return
	}
	s.SetCondition(vmi.Condition{
		Type: vmi.ConditionRestartRequired, Status: corev1.ConditionTrue, Reason: "RestartRequired",
		Message: "a non-live-updatable field was changed in the template spec",
	}, now)
}

func isTrue(c *vmi.Condition) bool { return c != nil && c.Status == corev1.ConditionTrue }

func named(name string) func(*appsv1.ControllerRevision) bool {
	return func(r *appsv1.ControllerRevision) bool { return r.Name == name }
}
