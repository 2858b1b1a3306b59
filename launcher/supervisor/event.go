package supervisor

import (
	"context"
	"errors"
	"time"

	"github.com/podvisor/podvisor/internal/launcher/libvirt"
	"github.com/podvisor/podvisor/launcher"
	"github.com/podvisor/podvisor/launcher/protocol"
)

// connected reads the state of the domain when there is a session: what happened
// without one is in no event.
func (s *Supervisor) connected(ctx context.Context, c *libvirt.Connection) {
	s.config.Logger.Info("the libvirt daemon answers")
	var exists bool
	var events int
	s.facts.change(func(f *facts) {
		f.session = launcher.Session{}
		exists, events = f.domain == launcher.Running || f.domain == launcher.Paused, f.events
	})
	if !exists {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	s.agent.notice()
	if d, err := c.Describe(ctx, s.domainName()); err == nil {
		s.facts.change(func(f *facts) { f.attached = actualDevices(d, f.attached, f.observed.Disks) })
	}
	switch err := s.read(ctx, c, events); {
	case errors.Is(err, libvirt.ErrNotFound):
		// No event will come any more.
		time.AfterFunc(forStatus, func() {
			log := s.qemuLog()
			s.facts.change(func(f *facts) {
				f.vanished()
				f.gone(log)
			})
		})
	case err != nil:
		s.config.Logger.Warn("the state of the domain is not known", "err", err)
	}
}

// disconnected notes that there is no session.
func (s *Supervisor) disconnected() {
	s.facts.change(func(f *facts) { f.session = launcher.Session{LostAt: time.Now()} })
}

// unanswered notes that the daemon has not answered since the time.
func (s *Supervisor) unanswered(since time.Time) {
	s.facts.change(func(f *facts) { f.session = launcher.Session{LostAt: since} })
}

// answered notes that the daemon answers again.
func (s *Supervisor) answered() {
	s.facts.change(func(f *facts) { f.session = launcher.Session{} })
}

// replaceDaemon ends a daemon that does not answer. The guest goes on, and the next
// daemon takes its domain over.
func (s *Supervisor) replaceDaemon() {
	s.config.Logger.Warn("the libvirt daemon does not answer and is replaced")
	s.daemon.Kill()
}

// happened takes an event of the daemon.
func (s *Supervisor) happened(e libvirt.Event) {
	if e.Domain != s.domainName() {
		return
	}
	s.config.Logger.Debug("libvirt event", "event", e.Kind, "pause", e.Pause)
	switch e.Kind {
	case libvirt.Started:
		s.facts.change(func(f *facts) {
			if f.domain == launcher.Starting {
				f.forget() // events come in order: those before were about another
			}
		})
	case libvirt.Suspended:
		s.suspended(e)
	case libvirt.Resumed:
		s.facts.change(func(f *facts) {
			f.events++
			f.off, f.resumed = false, true
			f.runs()
		})
		s.runsNow()
	case libvirt.ShutDown:
		// A daemon that was started after the guest had powered off may say so after QEMU has
		// ended, and nothing more: it takes the domain over while it ends it.
		s.ended(func(f *facts) { f.off = true })
	case libvirt.Interrupted:
		s.facts.change(func(f *facts) { f.interrupted = true })
	case libvirt.PoweredOff, libvirt.Destroyed, libvirt.Failed, libvirt.MovedAway:
		s.ended(func(f *facts) { f.event = e.Kind })
	case libvirt.Rebooted:
		s.rebooted()
	case libvirt.Panicked:
		s.facts.change(func(f *facts) { f.observed.Panics++ })
		s.config.Logger.Warn("the kernel of the guest panicked")
	case libvirt.WatchdogExpired:
		s.facts.change(func(f *facts) { f.watchdog = e.Action == libvirt.ActionPowerOff })
		s.config.Logger.Warn("the guest did not reset its watchdog in time", "action", e.Action)
	case libvirt.AgentChanged:
		s.agent.notice()
	}
}

// suspended notes that the guest was paused, with what can be found out about the
// cause. Events that follow wait for that.
func (s *Supervisor) suspended(e libvirt.Event) {
	var m protocol.Migration
	s.facts.change(func(f *facts) {
		f.events++
		m = f.moving()
	})
	if m.Stage == protocol.MigrationSends {
		s.config.Logger.Info("the guest stands still", "uid", m.UID, "pause", e.Pause)
	}
	pause := protocol.Pause{Cause: e.Pause}
	err := s.call(s.inner, func(ctx context.Context, c *libvirt.Connection) error {
		pause = s.explained(ctx, c, e.Pause)
		return nil
	})
	if err != nil {
		s.config.Logger.Warn("the cause of a pause is not known", "err", err)
	}
	s.facts.change(func(f *facts) { f.pauses(pause, time.Now()) })
}
