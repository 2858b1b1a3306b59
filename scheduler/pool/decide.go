package pool

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/validate"
)

// burst is how many VMs one plan creates at most, how many it changes, and how many it
// deletes.
const burst = 50

// Decide says what is to be done. A pool that is being deleted does nothing: the garbage
// collector deletes its VMs or removes their owner.
func Decide(o Observed) scheduler.Plan {
	if o.Pool.DeletionTimestamp != nil {
		return scheduler.Plan{}
	}
	r, err := current(o)
	if err != nil {
		return writeStatus(o, situation{Revision: r}, change{}, &vmi.Finding{Reason: InvalidTemplate, Message: err.Error()})
	}
	s := see(o, r)
	var c change
	if !o.Pool.Spec.Paused {
		c.replaced, c.delete, c.recheck = heal(o, s)
		c.create = create(o, s)
		c.refused = o.Refusal != nil && len(c.create) > 0
		if c.refused {
			c.create = nil
		}
		c.delete = append(c.delete, surplus(o, s, c.delete)...)
		c.delete = c.delete[:min(len(c.delete), burst)]
		roll(o, s, &c)
	}
	return c.plan(o, s)
}

// situation is what there is.
type situation struct {
	// Revision is that of the present template.
	Revision *appsv1.ControllerRevision
	members  []member
	leaving  []*vmi.VirtualMachine
}

func see(o Observed, r *appsv1.ControllerRevision) situation {
	s := situation{Revision: r}
	s.members, s.leaving = members(o)
	return s
}

// current is the revision of the pool's template, if VMs can be made from it. The webhook
// says the same; it may not have been asked.
func current(o Observed) (*appsv1.ControllerRevision, error) {
	if o.Pool.Spec.VirtualMachineTemplate == nil {
		return nil, fmt.Errorf("spec.virtualMachineTemplate is missing: describe the VMs")
	}
	if l := validate.PoolSelector(&o.Pool.Spec); len(l) > 0 {
		return nil, l.ToAggregate()
	}
	return Revision(o.Pool)
}

// change is what of the VMs is created, changed, restarted and deleted.
type change struct {
	create   []*vmi.VirtualMachine
	change   []scheduler.ChangeVM
	restart  []scheduler.RestartVM
	delete   []member
	replaced []replacement
	// recheck is when the next VM is to be replaced. 0: not by time.
	recheck time.Duration
	// refused says that VMs are missing and were refused.
	refused bool
	// stopped is why no VM is restarted. Nil: nothing is in the way.
	stopped *vmi.Finding
}

// plan is the change as actions. The status, which counts replacements, is written before VMs
// are deleted.
func (c change) plan(o Observed, s situation) scheduler.Plan {
	var p scheduler.Plan
	if s.lacksRevision(o, c) {
		p.Actions = append(p.Actions, scheduler.CreateRevision{Revision: s.Revision})
	}
	for _, v := range c.create {
		p.Actions = append(p.Actions, scheduler.CreateVM{VM: v})
	}
	p.Actions = append(p.Actions, event("SuccessfulCreate", "Created", names(c.create, func(v *vmi.VirtualMachine) string { return v.Name }))...)
	for _, a := range c.change {
		p.Actions = append(p.Actions, a)
	}
	for _, a := range c.restart {
		p.Actions = append(p.Actions, a)
	}
	p.Actions = append(p.Actions, event("SuccessfulRestart", "Restarted", names(c.restart, func(a scheduler.RestartVM) string { return a.VM.Name }))...)
	status := writeStatus(o, s, c, nil)
	p.Actions = append(p.Actions, status.Actions...)
	for _, m := range c.delete {
		p.Actions = append(p.Actions, scheduler.DeleteVM{VM: m.VirtualMachine})
	}
	p.Actions = append(p.Actions, event("SuccessfulDelete", "Deleted", names(c.delete, func(m member) string { return m.Name }))...)
	p.Actions = append(p.Actions, forget(o, s)...)
	p.Recheck = soonest(c.recheck, status.Recheck)
	return p
}

// lacksRevision says that the revision of the template is not there, which VMs have or get.
func (s situation) lacksRevision(o Observed, c change) bool {
	has := func(m member) bool { return m.revision() == s.Revision.Name }
	if len(c.create)+len(c.change) == 0 && (o.Pool.Spec.Paused || !slices.ContainsFunc(s.members, has)) {
		return false
	}
	return !slices.ContainsFunc(o.Revisions, func(r *appsv1.ControllerRevision) bool {
		return r.Name == s.Revision.Name && r.DeletionTimestamp == nil
	})
}

// soonest is the shorter of two times of which 0 is none.
func soonest(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// forget deletes the revisions that no VM and no VMI has.
func forget(o Observed, s situation) []scheduler.Action {
	used := map[string]bool{s.Revision.Name: true}
	for _, v := range o.VMs {
		used[v.Labels[vmi.PoolRevisionLabel]] = true
		if i := o.Instances[v.Name]; i != nil {
			used[i.Labels[vmi.PoolRevisionLabel]] = true
		}
	}
	var out []scheduler.Action
	for _, r := range o.Revisions {
		if !used[r.Name] && r.DeletionTimestamp == nil && metav1.IsControlledBy(r, o.Pool) {
			out = append(out, scheduler.DeleteRevision{Name: r.Name, UID: r.UID})
		}
	}
	return out
}

func names[T any](all []T, name func(T) string) []string {
	var out []string
	for _, t := range all {
		out = append(out, name(t))
	}
	return out
}

// mostNamed is how many VMs a message names.
const mostNamed = 10

// listed are the names in one line.
func listed(names []string) string {
	if more := len(names) - mostNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNamed], ", "), more)
	}
	return strings.Join(names, ", ")
}

// event is the event that says what was done with the VMs, if there are any.
func event(reason, done string, names []string) []scheduler.Action {
	if len(names) == 0 {
		return nil
	}
	message := fmt.Sprintf("%s %d virtual machines: %s", done, len(names), listed(names))
	if len(names) == 1 {
		message = done + " virtual machine " + names[0]
	}
	return []scheduler.Action{scheduler.Emit{Finding: vmi.Finding{Reason: reason, Message: message}}}
}
