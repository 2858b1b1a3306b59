package handler

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// occurred makes the counts of what the guest did those that the launcher reports,
// with an event for each that has risen.
func (p *Plan) occurred(o Observed, s *vmi.VirtualMachineInstanceStatus) {
	if o.Session == nil || o.Session.State == nil {
		return
	}
	state, final := o.Session.State, s.Phase.Final()
	if n, ok := p.risen(s.GuestReboots, state.Reboots, o.Now, final); ok {
		p.loops(s.GuestReboots, n, s)
		s.GuestReboots = n
		p.Events = append(p.Events, normal(EventRebooted, fmt.Sprintf("The guest rebooted; reboots since it was started: %d", n.Count)))
	}
	if n, ok := p.risen(s.GuestPanics, state.Panics, o.Now, final); ok {
		s.GuestPanics = n
		p.Events = append(p.Events, warning(EventPanicked, fmt.Sprintf("The kernel of the guest panicked; panics since it was started: %d", n.Count)))
	}
	p.settled(s, o.Now)
}

// loops makes the condition of a guest that reboots again and again, given the count that
// was reported before and the one that is reported now.
func (p *Plan) loops(before, now *vmi.GuestOccurrences, s *vmi.VirtualMachineInstanceStatus) {
	if before == nil || now.Count < loopReboots || s.Phase.Final() {
		return
	}
	mean := now.LastTimestamp.Sub(before.LastTimestamp.Time) / time.Duration(now.Count-before.Count)
	if mean > loopInterval {
		return
	}
	f := vmi.Finding{Reason: ReasonRebootsAgain, Message: fmt.Sprintf("The guest reboots again and again, %d times since it was started: its console says why", now.Count)}
	if s.Condition(vmi.ConditionGuestRebootLoop) == nil {
		p.Events = append(p.Events, warning(EventRebootLoop, f.Message))
	}
	s.SetCondition(vmi.Condition{Type: vmi.ConditionGuestRebootLoop, Status: corev1.ConditionTrue, Reason: f.Reason, Message: f.Message}, now.LastTimestamp)
}

// settled removes the condition of a guest that has not rebooted for loopOver since its
// last reboot that was reported.
func (p *Plan) settled(s *vmi.VirtualMachineInstanceStatus, now time.Time) {
	if s.Condition(vmi.ConditionGuestRebootLoop) == nil || s.GuestReboots == nil {
		return
	}
	if left := s.GuestReboots.LastTimestamp.Add(loopOver).Sub(now); left > 0 {
		p.recheck(min(left, loopOver))
		return
	}
	s.RemoveCondition(vmi.ConditionGuestRebootLoop)
}

// risen is the count to report in place of before, if it is higher and it is time to
// report it. The last report of a VMI does not wait.
func (p *Plan) risen(before *vmi.GuestOccurrences, count int64, now time.Time, final bool) (*vmi.GuestOccurrences, bool) {
	if before == nil {
		before = &vmi.GuestOccurrences{}
	}
	if count <= before.Count {
		return nil, false
	}
	wait := min(before.LastTimestamp.Add(countInterval(before.Count)).Sub(now), countLatest)
	if before.Count > 0 && wait > 0 && !final {
		p.recheck(wait)
		return nil, false
	}
	return &vmi.GuestOccurrences{Count: count, LastTimestamp: metav1.NewTime(now)}, true
}

// notBooted is the condition of a guest that seems not to have booted, or of which it is
// not known: one that is silent may use another console.
func (p *Plan) notBooted(state *protocol.State, s *vmi.VirtualMachineInstanceStatus, now metav1.Time) {
	f := state.NotBooted
	// A guest that resets again and again is neither booted nor not booted for long.
	if c := s.Condition(vmi.ConditionGuestNotBooted); f == nil && c != nil && s.GuestReboots != nil && !s.Phase.Final() {
		if wait := min(c.LastTransitionTime.Add(countInterval(s.GuestReboots.Count)).Sub(now.Time), countLatest); wait > 0 {
			p.recheck(wait)
			return
		}
	}
	if f == nil {
		s.RemoveCondition(vmi.ConditionGuestNotBooted)
		return
	}
	status, event := corev1.ConditionTrue, warning(EventNotBooted, f.Message)
	if f.Reason == protocol.ReasonNothingWritten {
		status, event = corev1.ConditionUnknown, normal(EventNotBooted, f.Message)
	}
	if s.Condition(vmi.ConditionGuestNotBooted) == nil {
		p.Events = append(p.Events, event)
	}
	s.SetCondition(vmi.Condition{Type: vmi.ConditionGuestNotBooted, Status: status, Reason: f.Reason, Message: f.Message}, now)
}
