package pool

import (
	"slices"
	"time"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmpool"
)

// What is asked for where the pool does not say it.
const (
	failedStarts = 3
	failingFor   = 5 * time.Minute
)

// mostFailingFor is how long a VM has to fail at most before it is replaced once more.
const mostFailingFor = time.Hour

// mostReplaced is how many replacements a status counts.
const mostReplaced = 1000

// replacement is a VM that was deleted because it failed to start.
type replacement = vmpool.ReplacedVM

// heal are the VMs that failed to start for so long that they are replaced now, all
// replacements that count, and when the next one is due.
func heal(o Observed, s situation) (counted []replacement, due []member, recheck time.Duration) {
	counted = counts(o, s)
	a := o.Pool.Spec.Autohealing
	if a == nil {
		return counted, nil, 0
	}
	for _, m := range s.members {
		if !failsToStart(a, m) {
			continue
		}
		was := replacedAs(counted, m.Name)
		wait := failingSince(m).Add(wanted(a, was)).Sub(o.Now)
		switch {
		case was != nil && was.UID == m.UID, wait <= 0:
			due = append(due, m)
		default:
			recheck = soonest(recheck, wait)
		}
	}
	slices.SortStableFunc(due, func(a, b member) int { return failingSince(a).Compare(failingSince(b)) })
	due = due[:max(0, min(len(due), o.Pool.Spec.MostUnavailable()-replacing(o, s, counted, due)))]
	var out []member
	for _, m := range due {
		switch r := replacedAs(counted, m.Name); {
		case r != nil && r.UID == m.UID: // it is counted, and was not deleted yet
		case r != nil:
			r.UID, r.Count = m.UID, r.Count+1
		case len(counted) == mostReplaced:
			continue
		default:
			counted = append(counted, replacement{Name: m.Name, UID: m.UID, Count: 1})
		}
		out = append(out, m)
	}
	return counted, out, recheck
}

// counts are the replacements that count: those of names that are still in use, until a VM of
// the name is ready.
func counts(o Observed, s situation) []replacement {
	var out []replacement
	for _, r := range o.Pool.Status.Replaced {
		i := slices.IndexFunc(s.members, func(m member) bool { return m.Name == r.Name })
		switch {
		case i >= 0 && s.members[i].ready():
		case i < 0 && len(s.members) >= o.Pool.Spec.Wanted():
		default:
			out = append(out, r)
		}
	}
	return out
}

// failsToStart says that enough starts of the VM have failed. It is never so of a VM that its user
// stopped: that one has no failed starts.
func failsToStart(a *vmpool.PoolAutohealing, m member) bool {
	threshold := failedStarts
	if a.StartUpFailureThreshold != nil {
		threshold = int(*a.StartUpFailureThreshold)
	}
	return m.failing() && m.failedStarts() >= threshold && !m.busy() && !m.stops()
}

// wanted is how long a VM has to fail before it is replaced, after the replacements of its
// name.
func wanted(a *vmpool.PoolAutohealing, was *replacement) time.Duration {
	d := failingFor
	if a.MinFailingToStartDuration != nil {
		d = max(0, a.MinFailingToStartDuration.Duration)
	}
	if was == nil {
		return d
	}
	most := max(d, mostFailingFor)
	for range was.Count {
		if d = max(2*d, time.Second); d >= most {
			return most
		}
	}
	return d
}

// failingSince is since when the VM has not been ready.
func failingSince(m member) time.Time {
	if c := m.Status.Condition(vmi.ConditionReady); c != nil {
		return c.LastTransitionTime.Time
	}
	return m.CreationTimestamp.Time
}

// replacing is how many VMs are on their way to be replaced: those that are missing, and those
// that took the place of others and are neither ready nor due.
func replacing(o Observed, s situation, counted []replacement, due []member) int {
	n := max(0, o.Pool.Spec.Wanted()-len(s.members))
	for _, m := range s.members {
		r := replacedAs(counted, m.Name)
		if r != nil && r.UID != m.UID && !slices.ContainsFunc(due, func(d member) bool { return d.Name == m.Name }) {
			n++
		}
	}
	return n
}

// replacedAs is the replacement of the VM of this name, or nil.
func replacedAs(all []replacement, name string) *replacement {
	for i := range all {
		if all[i].Name == name {
			return &all[i]
		}
	}
	return nil
}
