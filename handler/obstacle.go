package handler

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// obstacle is why the VMI is not as it is desired: what the launcher reports, or
// what fails in the session and has lasted. If it has not lasted yet, the
// obstacle is nil and wait is how long it must last still.
func obstacle(o Observed) (f *vmi.Finding, wait time.Duration) {
	s, delay, since := o.Session, findingDelay, o.Session.Since
	f = s.Finding
	switch {
	case s.State == nil:
		delay = SilenceDelay
		if f == nil {
			f = &vmi.Finding{Reason: vmi.ReasonLauncherUnresponsive, Message: "the launcher does not answer"}
		}
	case s.State.Finding != nil:
		return s.State.Finding, 0
	case isHeld(o):
		f, since = o.Beside, s.HeldSince
	case f == nil:
		return nil, 0
	}
	if wait := since.Add(delay).Sub(o.Now); wait > 0 {
		return nil, wait
	}
	return f, 0
}

// deadline is when the VMI fails if its guest has not started. It is counted from
// a time in the status, so it does not move when a handler is restarted; but this
// handler's own attempt lasts leastTrial.
func deadline(o Observed) time.Time {
	since := o.Session.Began
	for _, t := range o.Instance.Status.PhaseTransitionTimestamps {
		// A time after Began is of a clock that is ahead of this node's.
		if at := t.PhaseTransitionTimestamp.Time; t.Phase == vmi.PhaseScheduled && at.Before(since) {
			since = at
		}
	}
	at := since.Add(StartDeadline)
	if least := o.Session.Began.Add(leastTrial); at.Before(least) {
		at = least
	}
	// Nor is the time counted in which it had to wait for another one.
	if held := o.Session.Held; !held.IsZero() && at.Before(held.Add(StartDeadline)) {
		at = held.Add(StartDeadline)
	}
	return at
}

// starts says that the VMI has a deadline: its guest was not reported to run. A
// VMI that is being deleted has another one, which virt-controller keeps.
func starts(o Observed) bool {
	return o.Instance.Status.Phase == vmi.PhaseScheduled && o.Instance.DeletionTimestamp == nil && !runs(o)
}

// overdue says that the guest has not started by the deadline. It waits for a
// launcher that does not answer and is not reported for that yet.
func overdue(o Observed) bool {
	if !starts(o) || isHeld(o) || o.Now.Before(deadline(o)) {
		return false
	}
	if o.Session.State == nil {
		f, _ := obstacle(o)
		return f != nil
	}
	// A guest that is being stopped has the deadline of its stop.
	return o.Session.State.Phase != protocol.Stopping
}

// failStart makes a VMI fail whose guest has not started. A launcher that answers
// is stopped, so that its pod completes; the pod of any other is deleted by
// virt-controller.
func failStart(o Observed) Plan {
	p := Plan{}
	f, _ := obstacle(o)
	if f == nil {
		f = o.Session.Finding
	}
	if c := o.Instance.Status.Condition(vmi.ConditionSynchronized); f == nil && c != nil && c.Status == corev1.ConditionFalse {
		f = &vmi.Finding{Reason: c.Reason, Message: c.Message} // of before the connection was made again
	}
	if f == nil {
		f = &vmi.Finding{Reason: ReasonStartTimeout, Message: fmt.Sprintf("the launcher reports phase %s and no cause", o.Session.State.Phase)}
	}
	if o.Session.State != nil {
		p.put(o, &protocol.Stop{})
	}
	p.finish(o, vmi.PhaseFailed, vmi.Finding{Reason: f.Reason, Message: fmt.Sprintf("The guest did not start within %s: %s", StartDeadline, f.Message)})
	// Its volumes are in use until the pod ends, which is there to be observed or was removed.
	switch ready := p.Status.Condition(vmi.ConditionReady); {
	case isRemoved(o):
		ready.Status, ready.Reason = corev1.ConditionUnknown, vmi.ReasonPodRemoved
	case o.Session.State == nil: // the launcher may have started it and not said so
		ready.Status, ready.Reason = corev1.ConditionUnknown, vmi.ReasonLauncherUnresponsive
	}
	return p
}
