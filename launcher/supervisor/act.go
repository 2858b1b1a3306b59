package supervisor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/internal/launcher/libvirt"
	"github.com/podvisor/podvisor/launcher"
	"github.com/podvisor/podvisor/launcher/protocol"
)

// callTimeout is how long a call about a running domain may take. A QEMU that
// does not answer must not keep the loop from its deadlines.
const callTimeout = 3 * time.Second

// act executes the actions and operations of a plan. It starts what takes long and returns.
func (s *Supervisor) act(ctx context.Context, p launcher.Plan) error {
	for _, action := range p.Actions {
		switch action := action.(type) {
		case launcher.Start:
			s.actStart(ctx)
		case launcher.CancelStart:
			s.cancelStart()
		case launcher.Suspend:
			s.actSuspend(ctx)
		case launcher.Resume:
			s.actResume(ctx, action)
		case launcher.MeasureReads:
			s.actMeasure(ctx)
		case launcher.AbortMigration:
			s.actAbort(ctx)
		case launcher.Discard:
			s.actDiscard()
		case launcher.RequestShutdown:
			s.actShutdown(ctx)
		case launcher.Destroy:
			s.actDestroy(ctx)
		case launcher.Finish:
			close(s.over)
		default:
			return fmt.Errorf("execute %T: no such action", action)
		}
	}
	var faults []error
	for _, o := range p.Operations {
		faults = append(faults, s.operate(ctx, o))
	}
	return errors.Join(faults...)
}

// endAtOnce ends the domain without a grace period, and returns when it has ended.
func (s *Supervisor) endAtOnce(ctx context.Context) error {
	s.facts.change(func(f *facts) { f.stop(time.Now()) })
	s.config.Logger.Info("the end is asked for at once")
	select {
	case <-s.over:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// actStart starts the domain in the background.
func (s *Supervisor) actStart(ctx context.Context) {
	ctx, s.cancelStart = context.WithCancel(ctx)
	cancel := s.cancelStart
	s.facts.mu.Lock()
	s.facts.domain = launcher.Starting
	s.facts.forget()
	desired := *s.facts.desired
	s.facts.mu.Unlock()
	s.work.Go(func() {
		defer cancel()
		began := time.Now()
		made, err := s.start(ctx, desired)
		if err != nil {
			s.config.Logger.Error("start the domain", "err", err)
		} else {
			s.config.Logger.Info("the domain runs", "seconds", time.Since(began).Seconds(), "machineType", made.machineType, "emulated", made.emulated)
		}
		log := s.qemuLog() // the domain may have ended before its start was over
		s.facts.change(func(f *facts) {
			f.fault = err
			if err != nil {
				f.domain = launcher.Absent
				f.faults++
				f.retryAt = time.Now().Add(launcher.Backoff(f.faults))
				return
			}
			s.started(f, made, log)
		})
		if err == nil {
			s.hashLater(made.attachments)
		}
		s.measureDisks() // a claim may have grown meanwhile
	})
}

// started notes a domain that was created, and makes it what the events of its start say.
func (s *Supervisor) started(f *facts, made created, log qemuLog) {
	made.note(&f.observed)
	f.attached, f.attachments = made.devices, made.attachments
	f.domain = launcher.Running
	if !made.arrived {
		f.boots(0, time.Now())
		f.listens(time.Now())
	}
	if made.paused && f.pause.Cause == "" {
		f.pauses(protocol.Pause{Cause: protocol.PausedByUser}, time.Now()) // the event that says so may come later
	}
	if f.pause.Cause != "" {
		f.domain = launcher.Paused
	}
	s.settleEnd(f, log)
}

// actShutdown asks the guest to power off.
func (s *Supervisor) actShutdown(ctx context.Context) {
	s.facts.change(func(f *facts) { f.askedAt = time.Now() })
	s.work.Go(func() {
		err := s.call(ctx, func(ctx context.Context, c *libvirt.Connection) error { return c.Shutdown(ctx, s.domainName()) })
		s.config.Logger.Info("ask the guest to power off", "err", err)
	})
}

// actDestroy ends QEMU.
func (s *Supervisor) actDestroy(ctx context.Context) {
	s.facts.change(func(f *facts) { f.killedAt = time.Now() })
	s.work.Go(func() {
		err := s.destroy(ctx)
		s.config.Logger.Info("destroy the domain", "err", err)
	})
}

// destroy ends the domain: through libvirt, and without it if libvirt does not do
// so. A domain that is not there is no error. One that was killed without libvirt
// is: that it is gone is seen by the next attempt.
func (s *Supervisor) destroy(ctx context.Context) error {
	err := s.call(ctx, func(ctx context.Context, c *libvirt.Connection) error { return c.Destroy(ctx, s.domainName()) })
	if err == nil || errors.Is(err, libvirt.ErrNotFound) {
		return nil
	}
	if pid, unknown := s.daemon.QEMU(s.domainName()); unknown == nil {
		s.config.Logger.Warn("killed QEMU without libvirt", "err", unix.Kill(pid, unix.SIGKILL))
	}
	return err
}

func (s *Supervisor) call(ctx context.Context, do func(context.Context, *libvirt.Connection) error) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	conn, err := s.session.connection(ctx)
	if err != nil {
		return err
	}
	return do(ctx, conn)
}
