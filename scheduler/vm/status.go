package vm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/internal/vmi/verb"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
)

// own are the conditions that are the VM's and not copied from its VMI.
var own = []vmi.ConditionType{vmi.ConditionReady, vmi.ConditionFailure, vmi.ConditionRestartRequired, vmi.ConditionManualRecoveryRequired}

// write is the plan that makes the status say what is observed and what is next. It
// is empty if the status says so already, or if all it would say is that a VMI starts that
// may run in a moment.
func write(o Observed, n next) scheduler.Plan {
	v := o.VM.DeepCopy()
	describe(o, n, &v.Status)
	p := written(o, v)
	if left := starts(o, &v.Status); left > 0 && len(p.Actions) > 0 {
		return scheduler.Plan{Recheck: left}
	}
	return p
}

// startTime is how long after its creation nothing is written of a VMI that starts: most
// guests run by then. Times of creation are in whole seconds.
const startTime = 2 * time.Second

// starts is how long nothing is written yet if the status is to become s. 0: it is written
// at once, as it says more than that a VMI starts, or has what a later decision needs: a
// strategy or a request by which the VM starts once, the count of failed starts, and what it
// uses now instead of something else.
func starts(o Observed, s *vmi.VirtualMachineStatus) time.Duration {
	was := &o.VM.Status
	again := o.VM.Spec.Strategy() == vmi.RunAlways || o.VM.Spec.Strategy() == vmi.RunOnce
	detailed := slices.ContainsFunc(was.StateChangeRequests, func(r vmi.StateChangeRequest) bool { return len(r.Data) > 0 })
	if s.PrintableStatus != vmi.StatusStarting || was.Ready || !again || detailed ||
		replaced(was.InstancetypeRef, s.InstancetypeRef) || replaced(was.PreferenceRef, s.PreferenceRef) ||
		!equality.Semantic.DeepEqual(s.StartFailure, was.StartFailure) ||
		!equality.Semantic.DeepEqual(s.Condition(vmi.ConditionFailure), was.Condition(vmi.ConditionFailure)) {
		return 0
	}
	created := o.Now
	if v := o.own(); v != nil {
		created = v.CreationTimestamp.Time
	}
	left := created.Add(startTime).Sub(o.Now)
	if left > startTime { // the API server's clock is another one
		return 0
	}
	return max(0, left)
}

// replaced says that another ControllerRevision takes the place of the one in the status. The
// first one is found without the status.
func replaced(was, is *vmi.InstancetypeStatusRef) bool {
	return was != nil && !equality.Semantic.DeepEqual(was, is)
}

// written is the plan that writes the status of v, with an event if a failure is new.
func written(o Observed, v *vmi.VirtualMachine) scheduler.Plan {
	if equality.Semantic.DeepEqual(v.Status, o.VM.Status) {
		return scheduler.Plan{}
	}
	p := scheduler.Plan{Actions: []scheduler.Action{scheduler.WriteStatus[*vmi.VirtualMachine]{Object: v}}}
	is, was := v.Status.Condition(vmi.ConditionFailure), o.VM.Status.Condition(vmi.ConditionFailure)
	if is != nil && (was == nil || was.Reason != is.Reason) {
		p.Actions = append(p.Actions, scheduler.Emit{Warning: true, Finding: vmi.Finding{Reason: is.Reason, Message: is.Message}})
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
		s.InstancetypeRef, s.PreferenceRef = n.sized.instancetype, n.sized.preference
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
	failure(o, n, s, now)
	if stopping(o, n) {
		verb.SetStopping(s, now)
	} else {
		s.SetCondition(ready(o, n, s), now)
	}
	s.Reason = reason(o, n, s)
	restart(o, s, now)
}

// reason is that of the VMI, or of the VM's own failure. Empty: nothing is in the way.
func reason(o Observed, n next, s *vmi.VirtualMachineStatus) string {
	if i := o.own(); i != nil && !stopping(o, n) && i.Status.Reason != "" {
		return i.Status.Reason
	}
	if c := s.Condition(vmi.ConditionFailure); c != nil {
		return c.Reason
	}
	return ""
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
// time, it says just that, so that neither costs a write for each of its steps. Without a
// VMI it has the cause.
func ready(o Observed, n next, s *vmi.VirtualMachineStatus) vmi.Condition {
	c := vmi.Condition{Type: vmi.ConditionReady, Status: corev1.ConditionFalse}
	i := o.own()
	switch {
	case n.made || i != nil && i.Status.Reason == "" && printable(o, n) == vmi.StatusStarting:
		c.Reason, c.Message = vmi.ReasonGuestNotRunning, "the guest does not run yet"
	case i == nil:
		c.Reason, c.Message = ReasonInstanceNotExists, "the VM has no VMI"
		if f := s.Condition(vmi.ConditionFailure); f != nil {
			c.Message = f.Message
		}
	default:
		if r := i.Status.Condition(vmi.ConditionReady); r != nil {
			c.Status, c.Reason, c.Message = r.Status, r.Reason, r.Message
		}
	}
	return c
}

func failure(o Observed, n next, s *vmi.VirtualMachineStatus, now metav1.Time) {
	f := n.obstacle
	if f == nil {
		f = lastEnd(o)
	}
	if f == nil {
		s.RemoveCondition(vmi.ConditionFailure)
		return
	}
	s.SetCondition(vmi.Condition{Type: vmi.ConditionFailure, Status: corev1.ConditionTrue, Reason: f.Reason, Message: f.Message}, now)
}

// lastVMI begins the message of a failure that is the end of a VMI.
const lastVMI = "the last VMI ended: "

// lastEnd is how the VM's last VMI ended that failed, or that ended with its pod. It stays
// while there is no VMI and while the next one starts, until a guest runs or the VM is no
// longer to run. Nil: no end of a VMI is in the way.
func lastEnd(o Observed) *vmi.Finding {
	i := o.own()
	switch {
	case o.VM.DeletionTimestamp != nil, o.VM.Spec.Strategy() == vmi.RunHalted, o.VM.Status.RunStrategy != "" && renewed(o):
		return nil
	case i != nil && i.DeletionTimestamp == nil && o.state() == failed:
		f := &vmi.Finding{Reason: cmp.Or(i.Status.Reason, string(i.Status.Phase)), Message: lastVMI}
		if c := i.Status.Condition(vmi.ConditionReady); c != nil {
			f.Message += c.Message
		}
		return f
	case i != nil && i.DeletionTimestamp == nil && i.Status.HasRun():
		return nil
	}
	c := o.VM.Status.Condition(vmi.ConditionFailure)
	if c == nil || !strings.HasPrefix(c.Message, lastVMI) {
		return nil
	}
	return &vmi.Finding{Reason: c.Reason, Message: c.Message}
}

// restart says whether a change of the template waits for the next start.
func restart(o Observed, s *vmi.VirtualMachineStatus, now metav1.Time) {
	i := o.own()
	if i == nil || i.Status.Phase.Final() {
		s.RemoveCondition(vmi.ConditionRestartRequired)
		return
	}
	if isCurrent(o, i, running(o, i)) {
		s.RemoveCondition(vmi.ConditionRestartRequired)
		return
	}
	was, is, ok := templates(o, i)
	if !ok {
		return // what it was started from is not known, or not yet
	}
	live := o.LiveUpdate && isTrue(i.Status.Condition(vmi.ConditionLiveMigratable))
	changed := append(renamed(o, i), restartRequired(was, is, live)...)
	if len(changed) == 0 {
		s.RemoveCondition(vmi.ConditionRestartRequired)
		return
	}
	s.SetCondition(vmi.Condition{
		Type: vmi.ConditionRestartRequired, Status: corev1.ConditionTrue, Reason: "RestartRequired",
		Message: "a non-live-updatable field was changed in the template spec: " + namedFields(changed),
	}, now)
}

func isTrue(c *vmi.Condition) bool { return c != nil && c.Status == corev1.ConditionTrue }

// mostChanged is how many fields a message names.
const mostChanged = 5

// namedFields are the fields of the template in one line.
func namedFields(paths []string) string {
	if more := len(paths) - mostChanged; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(paths[:mostChanged], ", "), more)
	}
	return strings.Join(paths, ", ")
}
