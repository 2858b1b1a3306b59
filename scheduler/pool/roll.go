package pool

import (
	"fmt"
	"slices"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmpool"
)

// roll brings the template to the VMs, as the strategy says.
func roll(o Observed, s situation, c *change) {
	strategy := o.Pool.Spec.UpdateStrategy
	if strategy == nil {
		strategy = &vmpool.PoolUpdateStrategy{}
	}
	all := slices.DeleteFunc(slices.Clone(s.members), func(m member) bool {
		return m.ordinal < 0 || slices.ContainsFunc(c.delete, func(d member) bool { return d.Name == m.Name })
	})
	switch {
	case strategy.Unmanaged != nil:
	case strategy.Opportunistic != nil:
		for _, m := range all {
			c.give(o, s, m)
		}
	default:
		proactive(o, s, all, strategy.Proactive, c)
	}
}

// give changes the VM, unless it has the template.
func (c *change) give(o Observed, s situation, m member) {
	if m.revision() == s.Revision.Name || len(c.change) == burst {
		return
	}
	c.change = append(c.change, scheduler.ChangeVM{From: m.VirtualMachine, To: changed(o, m, s.Revision.Name)})
}

// proactive changes VMs that are off, and changes and restarts those that run, in their turn. A
// VM that was changed is restarted by the plan after.
func proactive(o Observed, s situation, all []member, p *vmpool.PoolProactiveUpdate, c *change) {
	var policy *vmpool.PoolSelectionPolicy
	if p != nil {
		policy = p.SelectionPolicy
	}
	var due []member
	for _, m := range all {
		switch {
		case m.revision() == s.Revision.Name && !m.stale():
		case !m.runs():
			c.give(o, s, m)
		case m.restartable():
			due = append(due, m)
		}
	}
	if c.stopped = stopped(s, all, due); c.stopped != nil {
		c.change = nil
		return
	}
	order := by(policy)
	slices.SortStableFunc(due, func(a, b member) int {
		if n := first(a.revision() == s.Revision.Name, b.revision() == s.Revision.Name); n != 0 {
			return n
		}
		if n := first(!a.ready(), !b.ready()); n != 0 {
			return n
		}
		return order(a, b)
	})
	left := o.Pool.Spec.MostUnavailable() - unavailable(o, s)
	proven, tried := trial(s)
	for _, m := range due {
		cost := 0
		if m.ready() {
			cost = 1
		}
		if cost > max(left, 0) || !proven && tried > 0 || len(c.restart) == burst {
			continue
		}
		left -= cost
		tried++
		if m.revision() == s.Revision.Name {
			c.restart = append(c.restart, scheduler.RestartVM{VM: m.VirtualMachine, Instance: m.instance})
			continue
		}
		c.give(o, s, m)
	}
}

// unavailable is how many VMs of the pool are missing, or are to run and are not ready.
func unavailable(o Observed, s situation) int {
	n := max(0, o.Pool.Spec.Wanted()-len(s.members))
	for _, m := range s.members {
		if m.down() {
			n++
		}
	}
	return n
}

// trial says whether a VM is ready that was started with the template, and how many are on
// their way there: also those that are about to start, as they get the template before, and
// those that are deleted by this plan.
func trial(s situation) (proven bool, tried int) {
	for _, m := range s.members {
		switch {
		case m.runs() && (m.revision() != s.Revision.Name || m.stale() && !m.ends()):
		case m.ready():
			proven = true
		case m.down():
			tried++
		}
	}
	return proven, tried
}

// stopped is why the VMs that are due, or are off and outdated, do not get the template: one
// that has it does not start. Nil: nothing is in the way, or none is left.
func stopped(s situation, all, due []member) *vmi.Finding {
	left := len(due)
	for _, m := range all {
		if m.revision() != s.Revision.Name && !slices.ContainsFunc(due, func(d member) bool { return d.Name == m.Name }) {
			left++
		}
	}
	if left == 0 {
		return nil
	}
	for _, m := range all {
		if (m.failing() || m.stuck() != nil) && m.revision() == s.Revision.Name {
			return &vmi.Finding{Reason: FailedStart, Message: fmt.Sprintf(
				"%s with the template: %s. %d more VMs wait for it: correct spec.virtualMachineTemplate, or the VM's obstacle", failed(m), because(m), left)}
		}
	}
	return nil
}
