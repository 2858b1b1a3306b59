package launcher

import (
	"errors"
	"time"

	"github.com/podvisor/podvisor/vmi"
)

// AskAgain is how long a guest is given to react before it is asked once more
// to power off: some miss a request that comes before their drivers are up.
const AskAgain = 2 * time.Second

// Decide says what to do about a domain. The table in the package's
// documentation shows the situations.
func Decide(o Observed) Plan {
	stop := !o.StopBy.IsZero()
	switch {
	case o.Domain == Gone:
		return gone(o)
	case o.Domain == Absent && stop:
		return finish(ReasonCancelled, "a stop was asked for before the machine was started")
	case o.Domain == Absent && errors.Is(o.Fault, vmi.ErrInvalid):
		return finish(ReasonNeverStarted, o.Fault.Error())
	case o.Domain == Absent && o.Wanted:
		return start(o)
	case o.Domain == Absent:
		return Plan{Phase: PhaseWaiting}
	case o.Domain == Starting && stop:
		return Plan{Phase: PhaseStopping, Actions: []Action{CancelStart{}}}
	case o.Domain == Starting:
		return Plan{Phase: PhaseStarting}
	case stop:
		return shutdown(o)
	case o.Domain == Paused:
		return Plan{Phase: PhasePaused}
	default:
		return Plan{Phase: PhaseRunning}
	}
}

// gone ends the launcher in the way that the domain went.
func gone(o Observed) Plan {
	switch {
	case o.Exit.Cause == PoweredOff:
		return finish(ReasonShutdown, o.Exit.Message)
	case !o.KilledAt.IsZero() && o.AskedAt.IsZero():
		return finish(ReasonShutdown, "the guest was switched off, with no time left to power off in")
	case !o.KilledAt.IsZero():
		return finish(ReasonKilled, "the guest had not powered off when its grace period was over")
	default:
		return finish(ReasonCrashed, o.Exit.Message)
	}
}

func finish(r Reason, message string) Plan {
	return Plan{Phase: PhaseEnded, Actions: []Action{Finish{Reason: r, Message: message}}}
}

func start(o Observed) Plan {
	if wait := o.RetryAt.Sub(o.Now); wait > 0 {
		return Plan{Phase: PhaseStarting, Recheck: wait}
	}
	return Plan{Phase: PhaseStarting, Actions: []Action{Start{}}}
}

// shutdown asks the guest until its time is over. Destroying is repeated, too:
// QEMU may not answer.
func shutdown(o Observed) Plan {
	left := o.StopBy.Sub(o.Now)
	p := Plan{Phase: PhaseStopping}
	if left <= 0 {
		wait := due(o.Now, o.KilledAt)
		if wait == 0 {
			p.Actions, wait = []Action{Destroy{}}, AskAgain
		}
		p.Recheck = wait
		return p
	}
	wait := due(o.Now, o.AskedAt)
	if wait == 0 {
		p.Actions, wait = []Action{RequestShutdown{}}, AskAgain
	}
	p.Recheck = min(left, wait)
	return p
}

// due is how long to wait before something that was done at last is done
// again.
func due(now, last time.Time) time.Duration {
	if last.IsZero() {
		return 0
	}
	return max(0, last.Add(AskAgain).Sub(now))
}

// Backoff is how long to wait after the given number of failed starts.
func Backoff(failures int) time.Duration {
	const most = 30 * time.Second
	wait := time.Second
	for range failures - 1 {
		if wait *= 2; wait >= most {
			return most
		}
	}
	return wait
}
