package supervisor

import (
	"reflect"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/launcher"
	"github.com/podvisor/podvisor/launcher/control"
	"github.com/podvisor/podvisor/launcher/libvirt"
)

// facts are what is known of the machine. Whoever learns something writes it
// here and wakes the loop.
type facts struct {
	mu   sync.Mutex
	wake chan struct{}

	desired *control.Desired
	domain  launcher.Domain
	stopBy  time.Time

	fault   error
	faults  int
	retryAt time.Time

	askedAt, killedAt time.Time

	state control.State  // Emulated, Machine and Disks of the running domain
	agent *control.Agent // in the guest; never changed, only replaced

	paused      bool              // libvirt said so last
	interrupted bool              // QEMU was told by a signal to end
	event       libvirt.EventKind // of the end
	status      *unix.WaitStatus  // of QEMU
	exit        launcher.Exit
}

func newFacts() *facts { return &facts{wake: make(chan struct{}, 1)} }

// change changes the facts and wakes the loop.
func (f *facts) change(change func(*facts)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
	select {
	case f.wake <- struct{}{}:
	default: // it is awake already
	}
}

// observe returns the facts as launcher.Decide wants them.
func (f *facts) observe(now time.Time) launcher.Observed {
	f.mu.Lock()
	defer f.mu.Unlock()
	return launcher.Observed{
		Now: now, Wanted: f.desired != nil, StopBy: f.stopBy, Domain: f.domain,
		Fault: f.fault, RetryAt: f.retryAt, AskedAt: f.askedAt, KilledAt: f.killedAt, Exit: f.exit,
	}
}

// want takes what the handler wants. What was wanted to stop stays so, and the
// shorter of two grace periods counts.
func (f *facts) want(d control.Desired, now time.Time) {
	f.change(func(f *facts) {
		if !reflect.DeepEqual(f.desired, &d) {
			f.retryAt = time.Time{} // what failed before may be right now
		}
		f.desired = &d
		if d.Stop != nil {
			f.stop(now.Add(time.Duration(d.Stop.GracePeriodSeconds) * time.Second))
		}
	})
}

// stop lets the guest run no longer than until by.
func (f *facts) stop(by time.Time) {
	if f.stopBy.IsZero() || by.Before(f.stopBy) {
		f.stopBy = by
	}
}

// published is what the handler is told of a plan.
func (f *facts) published(p launcher.Plan) control.State {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.state
	s.Agent = f.agent
	s.Phase = control.Phase(p.Phase)
	if p.Phase == launcher.PhaseStarting && f.fault != nil {
		s.Finding = &control.Problem{Reason: "StartFailed", Message: f.fault.Error()}
	}
	for _, a := range p.Actions {
		if e, ok := a.(launcher.Finish); ok {
			s.End = &control.End{Reason: control.EndReason(e.Reason), Message: e.Message}
		}
	}
	return s
}

// turn notes that the guest stands still or goes on. Before the start is over it
// only notes it.
func (f *facts) turn(paused bool) {
	f.paused = paused
	switch {
	case paused && f.domain == launcher.Running:
		f.domain = launcher.Paused
	case !paused && f.domain == launcher.Paused:
		f.domain = launcher.Running
	}
}

// forget drops what libvirt said of a domain that is not the one that is started.
func (f *facts) forget() { f.paused, f.interrupted, f.event, f.agent = false, false, "", nil }

// agentNow is what is known of the agent in the guest.
func (f *facts) agentNow() *control.Agent {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.agent
}
