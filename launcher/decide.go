package launcher

import (
	"errors"
	"time"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// Decide says what to do about a domain. The table in the package's
// documentation shows the situations.
func Decide(d Desired, a Actual) Plan {
	p := decide(d, a)
	p.State.Generation = d.Generation
	p.find(d, a)
	p.notBooted(d, a)
	p.silent(d, a)
	p.operate(d, a)
	p.State = published(a.Observed, p.State)
	return p
}

// isStateMissing says that the start failed since the state of firmware and TPM was to come by a
// migration. A retry does not help.
func isStateMissing(fault error) bool {
	r := (*vmi.Refusal)(nil)
	return errors.As(fault, &r) && r.Reason == string(protocol.StateMissing)
}

// published is the state that the handler reads: what was observed, with what is decided.
func published(observed, decided protocol.State) protocol.State {
	s := observed
	s.Generation, s.Phase, s.Finding = decided.Generation, decided.Phase, decided.Finding
	s.Pause, s.End, s.NotBooted = decided.Pause, decided.End, decided.NotBooted
	return s
}

func decide(d Desired, a Actual) Plan {
	switch {
	case a.sent():
		return sent(d, a)
	case a.Domain == Gone:
		return finish(d, end(d, a))
	case a.Domain == Absent && a.Moving.Stage == protocol.MigrationReceives && d.stops():
		p := plan(protocol.Stopping, Discard{})
		p.recheck(askAgain)
		return p
	case a.Domain == Absent && d.stops():
		return finish(d, protocol.End{Reason: protocol.Cancelled, Message: "the launcher was stopped before the guest ran"})
	case a.Domain == Absent && d.Target:
		return plan(protocol.Waiting)
	case a.Domain == Absent && isStateMissing(a.Fault):
		return finish(d, protocol.End{Reason: protocol.StateMissing, Message: a.Fault.Error()})
	case a.Domain == Absent && errors.Is(a.Fault, vmi.ErrInvalid):
		return finish(d, protocol.End{Reason: protocol.CannotStart, Message: vmi.FaultText(a.Fault)})
	case a.Domain == Absent && d.Run:
		return start(a)
	case a.Domain == Absent:
		return plan(protocol.Waiting)
	case a.Domain == Starting && d.stops():
		return plan(protocol.Stopping, CancelStart{})
	case a.Domain == Starting:
		return plan(protocol.Starting)
	case d.stops():
		return shutdown(d, a)
	case a.Stopped:
		return pausedBy(protocol.Pause{Cause: protocol.PausedBySignal})
	case a.Domain == Paused:
		return paused(d, a)
	default:
		return running(d, a)
	}
}

func plan(phase protocol.Phase, actions ...Action) Plan {
	return Plan{State: protocol.State{Phase: phase}, Actions: actions}
}

func finish(d Desired, e protocol.End) Plan {
	p := plan(protocol.Ended, Finish{})
	e.Terminated = d.stops() && d.Terminated
	p.State.End = &e
	return p
}

// end is how a domain that is gone ended.
func end(d Desired, a Actual) protocol.End {
	switch {
	case a.Exit.Cause == PoweredOff:
		return protocol.End{Reason: protocol.Shutdown, Message: a.Exit.Message}
	case a.Exit.Cause == MovedAway:
		return protocol.End{Reason: protocol.MovedAway, Message: a.Exit.Message}
	case !a.KilledAt.IsZero() && a.KilledAt.Before(d.StopBy):
		return protocol.End{Reason: protocol.Shutdown, Message: "the guest was paused and was switched off"}
	case !a.KilledAt.IsZero() && a.AskedAt.IsZero():
		return protocol.End{Reason: protocol.Shutdown, Message: "the guest was switched off, with no time left to power off in"}
	case !a.KilledAt.IsZero():
		return protocol.End{Reason: protocol.Killed, Message: "the guest had not powered off when its grace period was over"}
	default:
		return protocol.End{Reason: protocol.Crashed, Message: a.Exit.Message}
	}
}

func start(a Actual) Plan {
	p := plan(protocol.Starting)
	if wait := a.RetryAt.Sub(a.Now); wait > 0 {
		p.recheck(wait)
		return p
	}
	p.Actions = []Action{Start{}}
	return p
}

// sent is the plan for a guest that stands still here and may run in another launcher. It is
// not resumed, and it is not the end when QEMU ends: the outcome of the migration is. A stop
// waits for that, as long as its grace period lasts.
func sent(d Desired, a Actual) Plan {
	left := d.StopBy.Sub(a.Now)
	switch {
	case !d.stops():
		return pausedBy(protocol.Pause{Cause: protocol.PausedByMigration})
	case left > 0:
		p := plan(protocol.Stopping)
		p.recheck(left)
		return p
	case a.Domain == Gone:
		return finish(d, end(d, a))
	}
	return repeat(a.Now, a.KilledAt, Destroy{})
}

// shutdown asks the guest to power off until its time is over. Destroying is
// repeated, too: QEMU may not answer. A guest that is sent stays here first.
func shutdown(d Desired, a Actual) Plan {
	left := d.StopBy.Sub(a.Now)
	if a.sends() && left > 0 {
		p := plan(protocol.Stopping, AbortMigration{})
		p.recheck(left)
		return p
	}
	if a.Domain == Paused && a.Pause.Cause != protocol.PausedByMigration {
		left = 0
	}
	if left <= 0 {
		return repeat(a.Now, a.KilledAt, Destroy{})
	}
	p := repeat(a.Now, a.AskedAt, RequestShutdown{})
	p.recheck(left)
	return p
}

// repeat executes an action of a stop every askAgain.
func repeat(now, last time.Time, action Action) Plan {
	p := plan(protocol.Stopping)
	if wait := last.Add(askAgain).Sub(now); !last.IsZero() && wait > 0 {
		p.recheck(wait)
		return p
	}
	p.Actions = []Action{action}
	p.recheck(askAgain)
	return p
}

// running is the plan for a guest that runs.
func running(d Desired, a Actual) Plan {
	if d.Call == protocol.CallPause && !a.Turning {
		return plan(protocol.Running, Suspend{})
	}
	if trial := a.ResumedAt.Add(Trial).Sub(a.Now); !a.ResumedAt.IsZero() && trial > 0 {
		p := pausedBy(a.Pause)
		p.recheck(trial)
		return p
	}
	return plan(protocol.Running)
}

// paused is the plan for a guest that is paused and shall not stop.
func paused(d Desired, a Actual) Plan {
	switch {
	case d.Call == protocol.CallPause: // libvirt calls any pause one of the migration that is under way
		return pausedBy(protocol.Pause{Cause: protocol.PausedByUser})
	case a.sends() && a.Pause.Cause == protocol.PausedByMigration && a.Moving.Mode != vmi.MigrationPaused:
		return plan(protocol.Running) // for the last of it, and on
	case a.sends():
		return pausedBy(a.Pause)
	case a.Turning:
		return pausedBy(a.Pause)
	case d.Call == protocol.CallUnpause:
		return pausedBy(a.Pause, Resume{})
	case a.Pause.Cause == protocol.PausedByIOError:
		return retried(a)
	default:
		return pausedBy(a.Pause)
	}
}

func pausedBy(pause protocol.Pause, actions ...Action) Plan {
	p := plan(protocol.Paused, actions...)
	p.State.Pause = &pause
	return p
}

// retried is the plan for a guest that an I/O error paused: the cause may be gone.
func retried(a Actual) Plan {
	attempt := a.Resumes + 1
	if a.PausedAt.Sub(a.ResumedAt) > resumeLatest {
		attempt = 1
	}
	last := a.PausedAt
	if a.ResumedAt.After(last) {
		last = a.ResumedAt // the attempt itself failed
	}
	if wait := last.Add(resumeBackoff(attempt)).Sub(a.Now); wait > 0 {
		p := pausedBy(a.Pause)
		p.recheck(wait)
		return p
	}
	return pausedBy(a.Pause, Resume{Attempt: attempt})
}
