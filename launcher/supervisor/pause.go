package supervisor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/podvisor/podvisor/internal/launcher/libvirt"
	"github.com/podvisor/podvisor/launcher"
	"github.com/podvisor/podvisor/launcher/protocol"
)

var (
	errNotRunning = errors.New("the guest does not run")
	errStopping   = errors.New("the guest is being stopped")
	errReplaced   = errors.New("the opposite was called for meanwhile")
)

// calling returns what makes a call about pausing and returns when it is done.
func (s *Supervisor) calling(call protocol.Call) func(context.Context) error {
	return func(ctx context.Context) error {
		done := make(chan error, 1)
		s.facts.change(func(f *facts) { f.ask(call, done) })
		select {
		case err := <-done:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// ask puts a call in force. done gets its outcome.
func (f *facts) ask(call protocol.Call, done chan<- error) {
	switch {
	case f.domain != launcher.Running && f.domain != launcher.Paused:
		done <- errNotRunning
		return
	case !f.stopBy.IsZero():
		done <- errStopping
		return
	}
	if err := f.immobile(call); err != nil {
		done <- err
		return
	}
	if f.call != call {
		f.answer(errReplaced)
	}
	f.call, f.callers = call, append(f.callers, done)
}

// answer sends the outcome of the call in force to its callers.
func (f *facts) answer(err error) {
	for _, c := range f.callers {
		c <- err
	}
	f.callers = nil
}

// settle ends a call that is done or cannot be done any more.
func (f *facts) settle() {
	switch {
	case f.call == "":
	case f.domain != launcher.Running && f.domain != launcher.Paused:
		f.call = ""
		f.answer(errNotRunning)
	case !f.stopBy.IsZero():
		f.answer(errStopping)
	case f.turning:
	case f.call == protocol.CallPause && f.domain == launcher.Paused:
		f.answer(nil)
	case f.call == protocol.CallUnpause && f.domain == launcher.Running:
		f.call, f.resumedAt = "", time.Time{}
		f.answer(nil)
	}
}

// turned notes that a suspend or resume is over, and ends the call that asked for it.
// A resume has done what was called for even if an I/O error has paused the guest
// again already: it is not repeated without a back-off.
func (f *facts) turned(call protocol.Call, err error) {
	f.turning = false
	switch {
	case f.call != call:
	case err != nil:
		f.call = ""
		f.answer(err)
	case call == protocol.CallUnpause:
		f.call, f.resumedAt = "", time.Time{}
		f.answer(nil)
	}
}

// actSuspend pauses the guest.
func (s *Supervisor) actSuspend(ctx context.Context) {
	s.turn(ctx, "suspend the guest", (*libvirt.Connection).Suspend, protocol.CallPause, func(f *facts) bool {
		return f.call == protocol.CallPause
	})
}

// actResume resumes the guest.
func (s *Supervisor) actResume(ctx context.Context, r launcher.Resume) {
	s.turn(ctx, "resume the guest", (*libvirt.Connection).Resume, protocol.CallUnpause, func(f *facts) bool {
		if f.call == protocol.CallPause {
			return false
		}
		if r.Attempt > 0 {
			f.resumes, f.resumedAt = r.Attempt, time.Now()
		}
		return true
	})
}

// turn suspends or resumes the guest in the background, if begin says that this is
// still wanted: a call may have come, and may have been answered, after the
// decision.
func (s *Supervisor) turn(ctx context.Context, what string, do func(*libvirt.Connection, context.Context, string) error, call protocol.Call, begin func(*facts) bool) {
	begun := false
	s.facts.change(func(f *facts) {
		begun = begin(f)
		f.turning = begun
	})
	if !begun {
		return
	}
	s.work.Go(func() {
		err := s.call(ctx, func(ctx context.Context, c *libvirt.Connection) error {
			before := s.facts.eventsNow()
			if err := do(c, ctx, s.domainName()); err != nil {
				return err
			}
			return s.read(ctx, c, before)
		})
		s.config.Logger.Info(what, "err", err)
		s.facts.change(func(f *facts) { f.turned(call, err) })
	})
}

// eventsNow is the number of events so far.
func (f *facts) eventsNow() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.events
}

// read reads whether the guest is paused, and why. What it reads is dropped if
// there were events since the given number: they are newer, or newer ones follow.
func (s *Supervisor) read(ctx context.Context, c *libvirt.Connection, events int) error {
	status, err := c.Status(ctx, s.domainName())
	if err != nil {
		return err
	}
	var pause protocol.Pause
	if status.State == libvirt.Paused {
		pause = s.explained(ctx, c, status.Pause)
	}
	s.facts.change(func(f *facts) {
		switch {
		case f.events != events:
		case status.State == libvirt.Paused:
			f.pauses(pause, time.Now())
		case status.State == libvirt.Running:
			f.runs()
		}
	})
	return nil
}

// pauses notes that the guest is paused. Before the start is over the place of the
// domain in its life stays.
func (f *facts) pauses(pause protocol.Pause, now time.Time) {
	switch {
	case f.helped && f.call != protocol.CallPause && pause.Cause == protocol.PausedByUser:
		pause.Cause = protocol.PausedByMigration // libvirt takes the launcher for a user
	case f.call == protocol.CallPause && pause.Cause == protocol.PausedByMigration:
		pause.Cause = protocol.PausedByUser // libvirt takes the user for the migration that is under way
	}
	if f.domain == launcher.Paused && f.pause == pause {
		return
	}
	f.pause, f.pausedAt = pause, now
	if f.domain == launcher.Running {
		f.domain = launcher.Paused
	}
}

// runs notes that the guest runs. The cause of its pause stays known while a
// resume after an I/O error is on trial.
func (f *facts) runs() {
	switch f.domain {
	case launcher.Paused:
		f.domain = launcher.Running
		if !f.boot.Began.IsZero() { // it did not boot elsewhere
			f.boot.Began = time.Now() // it has not run meanwhile
		}
		if !f.output.Since.IsZero() {
			f.output.Since = time.Now()
		}
	case launcher.Starting:
		f.pause = protocol.Pause{}
	}
}

// explained is a pause with what is known of its cause.
func (s *Supervisor) explained(ctx context.Context, c *libvirt.Connection, cause protocol.PauseCause) protocol.Pause {
	p := protocol.Pause{Cause: cause}
	if cause != protocol.PausedByIOError {
		return p
	}
	disks, err := c.DiskErrors(ctx, s.domainName())
	if err != nil || len(disks) == 0 {
		s.config.Logger.Warn("the disk of an I/O error is not known", "err", err)
		return p
	}
	p.Volume = s.facts.volume(disks[0].Alias)
	what := "I/O error"
	if disks[0].NoSpace {
		what = "no space left"
	}
	if p.Volume == "" {
		p.Message = fmt.Sprintf("device %s: %s", disks[0].Alias, what)
	} else {
		p.Message = fmt.Sprintf("volume %s: %s", p.Volume, what)
	}
	return p
}

// volume is the volume of the disk that has the alias. Empty: not known.
func (f *facts) volume(alias string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := f.disk(alias)
	if i < 0 {
		return ""
	}
	return f.observed.Disks[i].Name
}
