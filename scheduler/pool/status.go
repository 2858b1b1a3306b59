package pool

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmpool"
)

// leastBetween is the time between two writes of a status in which only counts and messages
// differ: a hundred VMs that start or end are few writes.
const leastBetween = time.Second

// writeStatus is the plan that makes the status say what there is after the change. Invalid
// is why nothing is made of the pool; nil: nothing is wrong with it.
func writeStatus(o Observed, s situation, c change, invalid *vmi.Finding) scheduler.Plan {
	p, now := o.Pool.DeepCopy(), metav1.NewTime(o.Now)
	is, was := &p.Status, &o.Pool.Status
	condition(is, vmi.ConditionReplicaFailure, failure(o, s, c, invalid), now)
	var paused *vmi.Finding
	if p.Spec.Paused {
		paused = &vmi.Finding{Reason: Paused, Message: "spec.paused is true: no VM is created, changed or deleted"}
	}
	condition(is, vmi.ConditionReplicaPaused, paused, now)
	condition(is, vmi.ConditionRolloutStopped, c.stopped, now)
	if invalid == nil {
		condition(is, vmi.ConditionReplicaOutdated, outdated(s, c), now)
		count(o, s, c, is)
	}
	if equality.Semantic.DeepEqual(*is, *was) {
		return scheduler.Plan{}
	}
	if left := o.StatusWritten.Add(leastBetween).Sub(o.Now); left > 0 && countsOnly(*was, *is) {
		return scheduler.Plan{Recheck: left}
	}
	out := scheduler.Plan{Actions: []scheduler.Action{scheduler.WriteStatus[*vmpool.VirtualMachinePool]{Object: p}}}
	for _, t := range []vmi.ConditionType{vmi.ConditionReplicaFailure, vmi.ConditionRolloutStopped} {
		now, before := is.Condition(t), was.Condition(t)
		if now != nil && (before == nil || before.Reason != now.Reason) {
			out.Actions = append(out.Actions, scheduler.Emit{Warning: true, Finding: vmi.Finding{Reason: now.Reason, Message: now.Message}})
		}
	}
	return out
}

// count writes how many VMs there are after the change.
func count(o Observed, s situation, c change, is *vmpool.VirtualMachinePoolStatus) {
	is.Replicas, is.ReadyReplicas = int32(len(c.create)), 0
	for _, m := range s.members {
		if slices.ContainsFunc(c.delete, func(d member) bool { return d.Name == m.Name }) {
			continue
		}
		is.Replicas++
		if m.ready() {
			is.ReadyReplicas++
		}
	}
	if selector, err := metav1.LabelSelectorAsSelector(o.Pool.Spec.Selector); err == nil {
		is.LabelSelector = selector.String()
	}
	if !o.Pool.Spec.Paused {
		is.Replaced = c.replaced
	}
}

// countsOnly says that two statuses have the same conditions, replacements and selector, but
// for messages.
func countsOnly(a, b vmpool.VirtualMachinePoolStatus) bool {
	a, b = *a.DeepCopy(), *b.DeepCopy()
	for _, s := range []*vmpool.VirtualMachinePoolStatus{&a, &b} {
		s.Replicas, s.ReadyReplicas = 0, 0
		for i := range s.Conditions {
			s.Conditions[i].Message = ""
		}
	}
	return equality.Semantic.DeepEqual(a, b)
}

// failure is what is wrong with the pool, if anything is.
func failure(o Observed, s situation, c change, invalid *vmi.Finding) *vmi.Finding {
	switch {
	case invalid != nil:
		return invalid
	case c.refused:
		return o.Refusal
	}
	for _, m := range s.members {
		if m.failing() || m.stuck() != nil {
			return &vmi.Finding{Reason: FailedStart, Message: failed(m) + ": " + because(m)}
		}
	}
	return nil
}

// failed says that the VM does not start.
func failed(m member) string {
	if n := m.failedStarts(); n > 0 {
		return fmt.Sprintf("VirtualMachine %s failed to start, %d times in a row,", m.Name, n)
	}
	if c := m.stuck(); c != nil {
		return fmt.Sprintf("VirtualMachine %s does not start (%s)", m.Name, c.Reason)
	}
	return fmt.Sprintf("VirtualMachine %s failed to start", m.Name)
}

// because is why the VM does not start.
func because(m member) string {
	if c := m.stuck(); c != nil && c.Message != "" {
		return strings.TrimSuffix(c.Message, ".")
	}
	for _, t := range []vmi.ConditionType{vmi.ConditionFailure, vmi.ConditionReady} {
		if c := m.Status.Condition(t); c != nil && c.Message != "" {
			return strings.TrimSuffix(c.Message, ".")
		}
	}
	return "its status does not say why"
}

// outdated names the VMs that do not have the template, or run with another one. Nil: there
// are none.
func outdated(s situation, c change) *vmi.Finding {
	var old []string
	for _, m := range s.members {
		gone := slices.ContainsFunc(c.delete, func(d member) bool { return d.Name == m.Name })
		if !gone && (m.revision() != s.Revision.Name || m.stale()) {
			old = append(old, m.Name)
		}
	}
	if len(old) == 0 {
		return nil
	}
	return &vmi.Finding{Reason: Outdated, Message: fmt.Sprintf(
		"%d of %d VMs do not run with the present template: %s", len(old), len(s.members), listed(old))}
}

// condition sets the condition if there is a finding, and removes it if not.
func condition(s *vmpool.VirtualMachinePoolStatus, t vmi.ConditionType, f *vmi.Finding, now metav1.Time) {
	if f == nil {
		s.RemoveCondition(t)
		return
	}
	s.SetCondition(vmi.Condition{Type: t, Status: corev1.ConditionTrue, Reason: f.Reason, Message: f.Message}, now)
}
