package pool

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmpool"
)

// create are the VMs that are missing, with the lowest ordinals that are free. One that is
// replaced comes back under its name, which is not free before it is gone.
func create(o Observed, s situation) []*vmi.VirtualMachine {
	missing := min(o.Pool.Spec.Wanted()-len(s.members)-s.returning(o), burst)
	taken := map[string]bool{}
	for _, v := range o.VMs {
		taken[v.Name] = true
	}
	var out []*vmi.VirtualMachine
	for n := 0; len(out) < missing; n++ {
		if name := Name(o.Pool, n); taken[name] || o.Taken[name] || lacksDisks(o, n) {
			continue
		}
		v := made(o.Pool, n, s.Revision.Name)
		if o.Unguarded {
			v.Finalizers = nil
		}
		out = append(out, v)
	}
	return out
}

// returning is how many VMs are being deleted because they failed to start.
func (s situation) returning(o Observed) int {
	n := 0
	for _, v := range s.leaving {
		if r := replacedAs(o.Pool.Status.Replaced, v.Name); r != nil && r.UID == v.UID {
			n++
		}
	}
	return n
}

// surplus are the VMs that are too many, without those that are deleted anyway.
func surplus(o Observed, s situation, without []member) []member {
	strategy := o.Pool.Spec.ScaleInStrategy
	if strategy == nil {
		strategy = &vmpool.PoolScaleInStrategy{}
	}
	n := len(s.members) - len(without) - o.Pool.Spec.Wanted()
	if n <= 0 || strategy.Unmanaged != nil {
		return nil
	}
	var policy *vmpool.PoolSelectionPolicy
	if p := strategy.Proactive; p != nil {
		policy = p.SelectionPolicy
	}
	var all []member
	for _, m := range s.members {
		gone := slices.ContainsFunc(without, func(w member) bool { return w.Name == m.Name })
		if !gone && !m.busy() && (strategy.Opportunistic == nil || !m.runs()) {
			all = append(all, m)
		}
	}
	slices.SortStableFunc(all, by(policy))
	return all[:min(n, len(all))]
}

// by orders VMs: those that are selected first, then those that are not ready, then as the
// policy says.
func by(p *vmpool.PoolSelectionPolicy) func(a, b member) int {
	selected, order := labels.Nothing(), random
	if p != nil {
		if p.Selectors != nil && p.Selectors.LabelSelector != nil {
			if s, err := metav1.LabelSelectorAsSelector(p.Selectors.LabelSelector); err == nil {
				selected = s
			}
		}
		if p.SortPolicy != nil && orders[*p.SortPolicy] != nil {
			order = orders[*p.SortPolicy]
		}
	}
	return func(a, b member) int {
		return cmp.Or(first(selected.Matches(labels.Set(a.Labels)), selected.Matches(labels.Set(b.Labels))),
			first(!a.ready(), !b.ready()), order(a, b), cmp.Compare(a.Name, b.Name))
	}
}

// first orders what is true before what is not.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// random is the order of the UIDs, which are random and stay: a plan that is made again chooses
// the same VMs.
func random(a, b member) int { return cmp.Compare(a.UID, b.UID) }

var orders = map[vmpool.PoolSortPolicy]func(a, b member) int{
	vmpool.SortRandom:     random,
	vmpool.SortAscending:  func(a, b member) int { return a.ordinal - b.ordinal },
	vmpool.SortDescending: func(a, b member) int { return b.ordinal - a.ordinal },
	vmpool.SortNewest:     func(a, b member) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) },
	vmpool.SortOldest:     func(a, b member) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) },
}
