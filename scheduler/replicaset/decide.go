package replicaset

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
)

// Burst is how many VMIs one plan makes or deletes at most.
const Burst = 50

// Decide says what is to be done. A set that is being deleted does nothing: the
// garbage collector deletes its VMIs or removes their owner.
func Decide(o Observed) scheduler.Plan {
	if o.Set.DeletionTimestamp != nil {
		return scheduler.Plan{}
	}
	selector, err := metav1.LabelSelectorAsSelector(o.Set.Spec.Selector)
	if err != nil {
		return write(o, members{}, &vmi.Finding{Reason: InvalidSelector, Message: "spec.selector: " + err.Error()}, "")
	}
	m := sort(o, selector)
	var p scheduler.Plan
	for _, v := range m.release {
		p.Actions = append(p.Actions, scheduler.ReleaseInstance{Instance: v})
	}
	for _, v := range m.adopt {
		p.Actions = append(p.Actions, scheduler.AdoptInstance{Instance: v})
		m.alive = append(m.alive, v)
	}
	if !o.Set.Spec.Paused {
		p.Actions = append(p.Actions, scale(o, m)...)
		p.Recheck = m.settles
	}
	status := write(o, m, o.Refusal, selector.String())
	p.Actions = append(p.Actions, status.Actions...)
	if p.Recheck == 0 || status.Recheck > 0 && status.Recheck < p.Recheck {
		p.Recheck = status.Recheck
	}
	return p
}

// InvalidSelector is the reason of the condition ReplicaFailure of a set whose
// selector cannot be read.
const InvalidSelector = "InvalidSelector"

// scale makes what is missing, and then deletes what is too much and what has ended:
// the failures of a VMI that ended without running are written on its successor, so it
// is deleted only once that exists.
func scale(o Observed, m members) []scheduler.Action {
	var out []scheduler.Action
	wanted := int(o.Set.Spec.Wanted())
	missing := wanted - len(m.alive) - len(m.held)
	if missing > 0 && o.Refusal == nil {
		out = create(o, m, min(missing, Burst))
	}
	// What is too much is deleted from those that failed first.
	surplus := slices.Concat(m.held, slices.SortedFunc(slices.Values(m.alive), expendable))
	if n := len(surplus) - wanted; n > 0 {
		m.ended = append(m.ended, surplus[:n]...)
	}
	for _, v := range m.ended[:min(len(m.ended), Burst)] {
		if missing > 0 && o.Refusal != nil && failures(v) > 0 {
			continue // its successor does not exist
		}
		out = append(out, scheduler.DeleteInstance{Instance: v}, scheduler.Emit{Finding: vmi.Finding{
			Reason: "SuccessfulDelete", Message: fmt.Sprintf("Deleted virtual machine instance %s", v.Name),
		}})
	}
	return out
}

// create makes so many VMIs, with the failures of those that they replace.
func create(o Observed, m members, n int) []scheduler.Action {
	var counts []int
	for _, v := range m.ended {
		counts = append(counts, failures(v))
	}
	slices.SortFunc(counts, func(a, b int) int { return b - a })
	var out []scheduler.Action
	for i, name := range freeNames(o.Set, m.names, n) {
		before := 0
		if i < len(counts) {
			before = counts[i]
		}
		out = append(out, scheduler.CreateInstance{Instance: Instance(o.Set, name, before)}, scheduler.Emit{Finding: vmi.Finding{
			Reason: "SuccessfulCreate", Message: fmt.Sprintf("Created virtual machine instance %s", name),
		}})
	}
	return out
}

// expendable orders VMIs by which is to go first: one that is not ready, then the
// youngest.
func expendable(a, b *vmi.VirtualMachineInstance) int {
	if x, y := ready(a), ready(b); x != y {
		if y {
			return -1
		}
		return 1
	}
	return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}
