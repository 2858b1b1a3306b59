package replicaset

import (
	"cmp"
	"slices"
	"time"

	"github.com/podvisor/podvisor/vmi"
)

// change is what of the VMIs is created and deleted.
type change struct {
	create, delete []*vmi.VirtualMachineInstance
	// failed are VMIs that failed and are not replaced yet.
	failed []*vmi.VirtualMachineInstance
	// recheck is when the next of those is to be replaced. 0: not by time.
	recheck time.Duration
	// refused says that VMIs are missing and were refused.
	refused bool
}

// scale creates what is missing and deletes what is too much and what has ended. A
// VMI that ended is deleted after the one that replaces it is created: the number of
// failures in a row is written on that.
func scale(o Observed, m members) change {
	due, held, recheck := replaceable(o, m)
	c := change{failed: held, recheck: recheck}
	wanted := int(o.Set.Spec.Wanted())
	replaced := slices.SortedFunc(slices.Values(slices.Concat(m.ended, due)), worse)
	missing := min(wanted-len(m.alive)-len(m.adopt)-len(held), burst)
	c.refused = missing > 0 && o.Refusal != nil
	if missing > 0 && !c.refused {
		c.create = create(o, m, replaced, missing)
	}
	for _, v := range replaced {
		if c.refused && failures(v) > 0 {
			c.failed = append(c.failed, v) // what replaces it is not created
			continue
		}
		c.delete = append(c.delete, v)
	}
	// An adopted VMI changes first, and is then as good as any.
	if n := len(m.alive) + len(held) - wanted; n > 0 && len(m.adopt) == 0 {
		surplus := slices.Concat(held, slices.SortedFunc(slices.Values(m.alive), expendable))[:n]
		c.delete = append(c.delete, surplus...)
		c.failed = slices.DeleteFunc(slices.Clone(c.failed), func(v *vmi.VirtualMachineInstance) bool { return slices.Contains(surplus, v) })
	}
	c.delete = c.delete[:min(len(c.delete), burst)]
	return c
}

// create are so many VMIs, with the failures of those that they replace.
func create(o Observed, m members, replaced []*vmi.VirtualMachineInstance, n int) []*vmi.VirtualMachineInstance {
	var out []*vmi.VirtualMachineInstance
	template := templateHash(o)
	for i, name := range freeNames(o.Set, m.names, n) {
		n := 0
		if i < len(replaced) {
			n = failures(replaced[i])
		}
		v := Instance(o.Set, name, n)
		v.Annotations[TemplateAnnotation] = template
		if o.Unguarded {
			v.Finalizers = nil
		}
		out = append(out, v)
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
