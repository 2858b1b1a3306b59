package replicaset

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/validate"
)

// burst is how many VMIs one plan creates at most, and how many it deletes.
const burst = 50

// Decide says what is to be done. A set that is being deleted does nothing: the
// garbage collector deletes its VMIs or removes their owner.
func Decide(o Observed) scheduler.Plan {
	if o.Set.DeletionTimestamp != nil {
		return scheduler.Plan{}
	}
	selector, err := selectorOf(o.Set)
	if err != nil {
		return writeStatus(o, counted{replicas: o.Set.Status.Replicas, ready: o.Set.Status.ReadyReplicas, selector: o.Set.Status.LabelSelector},
			&vmi.Finding{Reason: InvalidTemplate, Message: err.Error()}, nil)
	}
	m := classify(o, selector)
	var p scheduler.Plan
	for _, v := range m.release {
		p.Actions = append(p.Actions, scheduler.ReleaseInstance{Instance: v})
	}
	for _, v := range m.adopt {
		p.Actions = append(p.Actions, scheduler.AdoptInstance{Instance: v})
	}
	var c change
	if !o.Set.Spec.Paused {
		c = scale(o, m)
		p.Actions = append(p.Actions, c.actions()...)
		p.Recheck = c.recheck
	}
	status := writeStatus(o, count(m, c, selector.String()), failure(o, m, c), outdated(o, m))
	p.Actions = append(p.Actions, status.Actions...)
	if p.Recheck == 0 || status.Recheck > 0 && status.Recheck < p.Recheck {
		p.Recheck = status.Recheck
	}
	return p
}

// selectorOf is the selector of the set, if it selects the VMIs that the set creates.
// The webhook says the same; it may not have been asked.
func selectorOf(s *vmi.VirtualMachineInstanceReplicaSet) (labels.Selector, error) {
	if s.Spec.Template == nil {
		return nil, fmt.Errorf("spec.template is missing: describe the VMIs")
	}
	if l := validate.Selector(&s.Spec); len(l) > 0 {
		return nil, l.ToAggregate()
	}
	selector, err := metav1.LabelSelectorAsSelector(s.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("spec.selector: %w", err)
	}
	if kept := vmi.UserLabels(s.Spec.Template.ObjectMeta.Labels); !selector.Matches(labels.Set(kept)) {
		return nil, fmt.Errorf("spec.selector: %s selects by a label that VMIs get from Podvisor only: select by other labels of the template", selector)
	}
	return selector, nil
}

// actions are the change as actions of a plan, with one event for all VMIs that are
// created and one for all that are deleted.
func (c change) actions() []scheduler.Action {
	var out []scheduler.Action
	for _, v := range c.create {
		out = append(out, scheduler.CreateInstance{Instance: v})
	}
	out = append(out, event("SuccessfulCreate", "Created", c.create)...)
	for _, v := range c.delete {
		out = append(out, scheduler.DeleteInstance{Instance: v})
	}
	return append(out, event("SuccessfulDelete", "Deleted", c.delete)...)
}

// event is the event that says what was done with the VMIs, if there are any.
func event(reason, done string, all []*vmi.VirtualMachineInstance) []scheduler.Action {
	var names []string
	for _, v := range all {
		names = append(names, v.Name)
	}
	message := done + " virtual machine instance " + strings.Join(names, "")
	switch len(names) {
	case 0:
		return nil
	case 1:
	default:
		message = fmt.Sprintf("%s %d virtual machine instances: %s", done, len(names), strings.Join(names, ", "))
	}
	return []scheduler.Action{scheduler.Emit{Finding: vmi.Finding{Reason: reason, Message: message}}}
}
