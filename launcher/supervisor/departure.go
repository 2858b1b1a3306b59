package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/internal/launcher/libvirt"
	"github.com/podvisor/podvisor/internal/storage/probe"
	"github.com/podvisor/podvisor/internal/transport"
	"github.com/podvisor/podvisor/launcher"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// departure is a migration at its source.
type departure struct {
	uid      types.UID
	settings protocol.MigrationSettings

	begun *once[protocol.MigrationBegun]
	// Set by begun.
	conn          *libvirt.Connection
	m             libvirt.Migration
	memory, disks *gate
	bytes         int64 // of the guest's memory and of what is copied

	// The rest is guarded by the lock of moves.
	performed *once[protocol.MigrationStep] // nil: it was not asked for
	confirmed *once[protocol.MigrationStep] // nil: the same
	moved     bool                          // what confirmed says
	why       *vmi.Finding                  // it is aborted; nil: it is not
}

// gate is that of the stream. Nil: it is not open yet.
func (d *departure) gate(name protocol.Stream) *gate {
	switch {
	case !d.begun.over():
		return nil
	case name == protocol.StreamMigrationDisks:
		return d.disks
	}
	return d.memory
}

// close ends what a migration has open. It has begun, or failed to.
func (d *departure) close() {
	for _, g := range []*gate{d.memory, d.disks} {
		if g != nil {
			g.close()
		}
	}
	if d.conn != nil {
		_ = d.conn.Close() // fails if the daemon has ended it
	}
}

// departing is the departure of this UID. The lock of moves is held.
func (s *Supervisor) departing(uid types.UID) (*departure, error) {
	if d := s.moves.from; d != nil && d.uid == uid {
		return d, nil
	}
	return nil, transport.Refusal(protocol.ReasonNotFound, "migration %s has not begun here", uid)
}

// migrationBegin describes the domain for the target.
func (s *Supervisor) migrationBegin(ctx context.Context, o protocol.MigrationBegin) (protocol.MigrationBegun, error) {
	d, err := s.depart(o)
	if err != nil {
		return protocol.MigrationBegun{}, err
	}
	return d.begun.wait(ctx)
}

// depart begins a migration, or is the one of this UID.
func (s *Supervisor) depart(o protocol.MigrationBegin) (*departure, error) {
	s.moves.mu.Lock()
	defer s.moves.mu.Unlock()
	if d := s.moves.from; d != nil {
		if d.uid == o.UID {
			return d, nil
		}
		if d.performed != nil && (!d.performed.over() || d.performed.err == nil && (d.confirmed == nil || !d.confirmed.over())) {
			return nil, transport.Refusal(protocol.ReasonBusy, "migration %s is under way", d.uid)
		}
		if !d.begun.over() {
			return nil, transport.Refusal(protocol.ReasonBusy, "migration %s begins", d.uid)
		}
		d.close()
	}
	if err := s.facts.mayLeave(); err != nil {
		return nil, err
	}
	d := &departure{uid: o.UID, settings: o.Settings}
	s.moves.from = d
	s.at(d.uid, protocol.MigrationBegins, "", nil)
	d.begun = doOnce(s, func(ctx context.Context) (protocol.MigrationBegun, error) {
		b, err := s.begin(ctx, d)
		if err != nil {
			d.close()
			s.moves.mu.Lock()
			defer s.moves.mu.Unlock()
			if s.moves.from == d {
				s.moves.from = nil // it may be begun once more
				s.at(d.uid, protocol.MigrationStays, "", migrationFinding(err))
			}
		}
		return b, err
	})
	return d, nil
}

// mayLeave is why the guest cannot move now.
func (f *facts) mayLeave() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case !f.exists():
		return errNotRunning
	case !f.stopBy.IsZero():
		return errStopping
	case f.stopped:
		return transport.Refusal(protocol.ReasonUnavailable, "a signal has stopped QEMU: continue it")
	case f.domain == launcher.Paused && !f.byUser():
		return transport.Refusal(protocol.ReasonUnavailable, "the guest is paused, and not by its user but by: %s", f.pause.Cause)
	case f.turning:
		return transport.Refusal(protocol.ReasonBusy, "the guest is being paused or resumed")
	}
	for _, p := range f.operations {
		if p.UnderWay {
			return transport.Refusal(protocol.ReasonBusy, "a device of the guest is being changed")
		}
	}
	return nil
}

// begin asks libvirt for the domain, and listens for QEMU.
func (s *Supervisor) begin(ctx context.Context, d *departure) (b protocol.MigrationBegun, err error) {
	if d.conn, err = s.dialMigration(ctx); err != nil {
		return b, err
	}
	asking, answered := context.WithTimeout(ctx, dialTimeout)
	now, err := d.conn.Describe(asking, s.domainName())
	answered()
	if err != nil {
		return b, err
	}
	if b.Disks, err = s.departingDisks(ctx, now); err != nil {
		return b, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if now.Memory != nil {
		d.bytes = int64(now.Memory.Value) << 10 // libvirt counts in KiB
	}
	for _, disk := range b.Disks {
		if disk.Copied {
			d.bytes += s.facts.allocated(disk.Name)
		}
	}
	d.m = s.migration(d.settings, b.Disks)
	if b.XML, b.Cookie, err = d.conn.MigrateBegin(ctx, s.domainName(), d.m); err != nil {
		return b, err
	}
	if d.memory, err = openGate(s.migrationSocket(protocol.StreamMigrationMemory)); err != nil {
		return b, err
	}
	d.disks, err = openGate(s.migrationSocket(protocol.StreamMigrationDisks))
	return b, err
}

// departingDisks are the disks of the domain for the target. What the pod has made of a disk is
// copied if the guest may write to it. QEMU copies no other: the images of files that the guest
// only reads are sent with the description of the disks, and the target must have the rest.
func (s *Supervisor) departingDisks(ctx context.Context, now *libvirtxml.Domain) ([]protocol.MigrationDisk, error) {
	s.facts.mu.Lock()
	disks, attachments := s.facts.observed.Disks, s.facts.attachments
	s.facts.mu.Unlock()
	readOnly := map[string]bool{}
	if now.Devices != nil {
		for _, d := range now.Devices.Disks {
			if d.Target != nil {
				readOnly[d.Target.Dev] = d.ReadOnly != nil
			}
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, hashWait, errHashLate)
	defer cancel()
	var all []protocol.MigrationDisk
	left := mostContent
	for _, d := range disks {
		a, ok := attachments[d.Name]
		if !ok {
			return nil, transport.Refusal(protocol.ReasonUnavailable, "how the disk of volume %s was made is not known to a launcher that was started again", d.Name)
		}
		m := protocol.MigrationDisk{Name: d.Name, Target: d.Target, SizeBytes: d.SizeBytes, Copied: a.Ephemeral() && !readOnly[d.Target]}
		var err error
		if image := isImage(a.Attachment); image && !m.Copied {
			if m.Content, err = pack(a.Path, left); err != nil {
				return nil, fmt.Errorf("volume %s: %w", d.Name, err)
			}
			left -= len(m.Content)
		}
		if !isImage(a.Attachment) || !sent(m) {
			if m.Backing, err = s.backing(ctx, a); err != nil {
				return nil, fmt.Errorf("volume %s: %w", d.Name, err)
			}
		}
		all = append(all, m)
	}
	return all, nil
}

// allocated is the space that the file of the disk takes.
func (f *facts) allocated(name string) int64 {
	f.mu.Lock()
	a := f.attachments[name]
	f.mu.Unlock()
	facts, err := probe.Path(a.Path)
	if err != nil {
		return 0 // it only counts for how long the migration may take
	}
	return facts.AllocatedBytes
}

// migrationPerform sends the guest, and returns when the source is done with that.
func (s *Supervisor) migrationPerform(ctx context.Context, o protocol.MigrationStep) (protocol.MigrationStep, error) {
	performed, err := s.performing(o)
	if err != nil {
		return protocol.MigrationStep{}, err
	}
	return performed.wait(ctx)
}

func (s *Supervisor) performing(o protocol.MigrationStep) (*once[protocol.MigrationStep], error) {
	s.moves.mu.Lock()
	defer s.moves.mu.Unlock()
	d, err := s.departing(o.UID)
	switch {
	case err != nil:
		return nil, err
	case d.performed != nil:
		return d.performed, nil
	case d.why != nil:
		return nil, &vmi.Refusal{Finding: *d.why}
	case !d.begun.over():
		return nil, transport.Refusal(protocol.ReasonBusy, "migration %s still begins", d.uid)
	}
	if err := s.facts.mayLeave(); err != nil {
		return nil, err
	}
	s.at(d.uid, protocol.MigrationSends, vmi.MigrationPreCopy, nil)
	d.performed = doOnce(s, func(ctx context.Context) (protocol.MigrationStep, error) {
		step, err := s.perform(ctx, d, o.Cookie)
		if err != nil {
			s.moves.mu.Lock()
			why := d.why
			s.moves.mu.Unlock()
			if why == nil {
				why = migrationFinding(err)
			}
			s.stay(ctx, d, why)
			return step, &vmi.Refusal{Finding: *why}
		}
		return step, nil
	})
	return d.performed, nil
}

// perform sends the guest. When it succeeds the guest stands still.
func (s *Supervisor) perform(ctx context.Context, d *departure, cookie []byte) (step protocol.MigrationStep, err error) {
	if err := s.keep(note{UID: d.uid, Stage: protocol.MigrationSends}); err != nil {
		return step, err
	}
	if err := d.memory.carried(ctx); err != nil {
		return step, err
	}
	if len(d.m.Disks) > 0 {
		if err := d.disks.carried(ctx); err != nil {
			return step, err
		}
	}
	s.allowDowntime(ctx, d.convergence().Downtime)
	watching, stop := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { s.converge(watching, d) })
	cookie, err = d.conn.MigratePerform(ctx, s.domainName(), d.m, cookie)
	stop()
	watch.Wait()
	if err != nil {
		return step, err
	}
	s.config.Logger.Info("everything is sent", "uid", d.uid)
	c := carried{Libvirt: cookie}
	var desired protocol.Desired
	s.facts.change(func(f *facts) {
		desired = *f.desired
		// From here on no call changes whether the guest is to be paused.
		c.Paused = f.byUser()
		c.Reboots, c.Panics, c.Frozen = f.observed.Reboots, f.observed.Panics, f.observed.Frozen
		sent := f.moving()
		sent.Stage = protocol.MigrationSent
		f.migration = &sent
	})
	step.UID = d.uid
	if c.Variables, err = variables(&desired.Instance.Spec); err == nil {
		step.Cookie, err = json.Marshal(c)
	}
	if err == nil {
		err = s.keep(note{UID: d.uid, Stage: protocol.MigrationSent, Cookie: step.Cookie})
	}
	if err != nil {
		s.confirmStays(ctx, d)
	}
	return step, err
}

// stay lets the guest run here, as it did before, and notes why it does.
func (s *Supervisor) stay(ctx context.Context, d *departure, why *vmi.Finding) {
	d.close()
	s.persist(ctx, "let the guest that does not move run on", func(ctx context.Context) error {
		err := s.call(ctx, func(ctx context.Context, c *libvirt.Connection) error {
			events := s.facts.eventsNow()
			status, err := c.Status(ctx, s.domainName())
			if err != nil {
				return err
			}
			if status.State == libvirt.Paused && s.facts.mayResume(status.Pause) {
				if err := c.Resume(ctx, s.domainName()); err != nil {
					return err
				}
			}
			return s.read(ctx, c, events)
		})
		if errors.Is(err, libvirt.ErrNotFound) {
			return nil // its end is no matter of the migration
		}
		return err
	})
	s.facts.change(func(f *facts) {
		f.helped = false
		f.migration = &protocol.Migration{UID: d.uid, Stage: protocol.MigrationStays, Finding: why}
	})
	s.config.Logger.Info("the guest does not move", "uid", d.uid, "finding", why)
	if err := s.keep(note{UID: d.uid, Stage: protocol.MigrationStays}); err != nil {
		s.config.Logger.Warn("note that the guest does not move", "err", err)
	}
}

// mayResume says that a guest which is paused for this cause was paused for its migration.
func (f *facts) mayResume(cause protocol.PauseCause) bool {
	switch cause {
	case protocol.PausedByIOError, protocol.PausedByWatchdog, protocol.PausedByPanic:
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.byUser()
}

// converge watches the sending, and helps or aborts it, until ctx ends.
func (s *Supervisor) converge(ctx context.Context, d *departure) {
	c := d.convergence()
	tick := time.NewTicker(launcher.ConvergenceEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		var job libvirt.Job
		err := s.call(ctx, func(ctx context.Context, conn *libvirt.Connection) (err error) {
			job, err = conn.Job(ctx, s.domainName())
			return err
		})
		if err != nil || job.Elapsed == 0 {
			s.config.Logger.Debug("how far the migration is, is not known", "err", err)
			continue
		}
		next, abort := c.Look(job.RemainingBytes, job.Iterations, time.Now())
		if next.Downtime != c.Downtime {
			s.allowDowntime(ctx, next.Downtime)
		}
		switch {
		case abort != "":
			s.keepHere(d, vmi.Finding{Reason: protocol.ReasonMigrationAborted, Message: abort})
			s.abortJob(ctx, d)
			return
		case next.Mode != c.Mode:
			if err := s.help(ctx, d, next.Mode); err != nil {
				s.config.Logger.Warn("help the migration", "mode", next.Mode, "err", err)
				continue
			}
			fallthrough
		default:
			c = next
		}
	}
}

// convergence is that of a sending that begins.
func (d *departure) convergence() launcher.Convergence {
	c := launcher.Convergence{Settings: d.settings, Bytes: d.bytes, Began: time.Now(), Mode: vmi.MigrationPreCopy}
	c.Downtime = c.First()
	return c
}

// allowDowntime sets how long the guest may stand still at the end. Without it the limit of
// before holds.
func (s *Supervisor) allowDowntime(ctx context.Context, most time.Duration) {
	if err := s.call(ctx, func(ctx context.Context, c *libvirt.Connection) error {
		return c.SetMaxDowntime(ctx, s.domainName(), most)
	}); err != nil {
		s.config.Logger.Warn("set the downtime of the migration", "err", err)
	}
}

// help makes a sending that is late one of another mode.
func (s *Supervisor) help(ctx context.Context, d *departure, mode vmi.MigrationMode) error {
	pauses := false
	s.facts.change(func(f *facts) {
		pauses = mode == vmi.MigrationPaused && f.domain == launcher.Running
		f.helped = f.helped || pauses
	})
	err := s.call(ctx, func(ctx context.Context, c *libvirt.Connection) error {
		switch {
		case mode == vmi.MigrationPostCopy:
			return c.StartPostCopy(ctx, s.domainName())
		case pauses:
			return c.Suspend(ctx, s.domainName())
		}
		return nil
	})
	if err == nil {
		s.at(d.uid, protocol.MigrationSends, mode, nil)
	}
	return err
}

// keepHere notes that the departure is aborted, and why.
func (s *Supervisor) keepHere(d *departure, why vmi.Finding) {
	s.moves.mu.Lock()
	defer s.moves.mu.Unlock()
	if d.why == nil {
		d.why = &why
	}
}

// abortJob aborts the sending until it is over, or until ctx ends. At its very beginning and at
// its end there is nothing that libvirt could abort.
func (s *Supervisor) abortJob(ctx context.Context, d *departure) {
	for {
		err := s.call(ctx, func(ctx context.Context, c *libvirt.Connection) error { return c.AbortJob(ctx, s.domainName()) })
		s.config.Logger.Info("abort the migration", "uid", d.uid, "err", err)
		select {
		case <-time.After(again):
		case <-d.performed.done:
			return
		case <-ctx.Done():
			return
		}
	}
}

// aborted is what is said of a migration that someone aborts.
var aborted = vmi.Finding{Reason: protocol.ReasonMigrationAborted, Message: "the live migration has been aborted"}

// migrationAbort keeps the guest here. It returns when that is so, and fails when everything is
// at the target.
func (s *Supervisor) migrationAbort(ctx context.Context, o protocol.MigrationStep) (protocol.MigrationStep, error) {
	s.moves.mu.Lock()
	d, err := s.departing(o.UID)
	if err != nil {
		s.moves.mu.Unlock()
		return protocol.MigrationStep{}, err
	}
	if d.why == nil && (d.performed == nil || !d.performed.over()) {
		d.why = &aborted
		if d.performed == nil {
			s.at(d.uid, protocol.MigrationStays, "", d.why)
			if d.begun.over() {
				d.close()
			}
		}
	}
	performed := d.performed
	s.moves.mu.Unlock()
	step := protocol.MigrationStep{UID: d.uid}
	if performed == nil {
		return step, nil
	}
	if !performed.over() {
		s.abortJob(ctx, d)
	}
	if _, err := performed.wait(ctx); err == nil {
		return step, transport.Refusal(protocol.ReasonUnavailable, "everything is at the target: the guest is about to run there")
	}
	return step, context.Cause(ctx)
}

// actAbort keeps a guest here that is to be stopped.
func (s *Supervisor) actAbort(ctx context.Context) {
	s.moves.mu.Lock()
	d := s.moves.from
	begins := d != nil && d.why == nil && d.performed != nil && !d.performed.over()
	if begins {
		d.why = &vmi.Finding{Reason: protocol.ReasonMigrationAborted, Message: aborted.Message + ": the guest is to be stopped"}
	}
	s.moves.mu.Unlock()
	if begins {
		s.work.Go(func() { s.abortJob(ctx, d) })
	}
}

// migrationConfirm ends the domain if its guest has moved, or lets the guest run on.
func (s *Supervisor) migrationConfirm(ctx context.Context, o protocol.MigrationEnd) (protocol.MigrationStep, error) {
	confirmed, err := s.confirming(o)
	if err != nil || confirmed == nil {
		return protocol.MigrationStep{UID: o.UID}, err
	}
	return confirmed.wait(ctx)
}

// confirming is the end of the migration. Nil: the guest runs here already, as it shall.
func (s *Supervisor) confirming(o protocol.MigrationEnd) (*once[protocol.MigrationStep], error) {
	s.moves.mu.Lock()
	defer s.moves.mu.Unlock()
	d, err := s.departing(o.UID)
	switch {
	case err != nil:
		return nil, err
	case d.performed == nil && d.why == nil || d.performed != nil && !d.performed.over():
		return nil, transport.Refusal(protocol.ReasonBusy, "migration %s was not performed", d.uid)
	case d.performed == nil || d.performed.err != nil:
		if o.Moved {
			return nil, transport.Refusal(protocol.ReasonMalformed, "the guest of migration %s has not moved: it runs here", d.uid)
		}
		return nil, nil
	case d.confirmed != nil && d.moved != o.Moved:
		return nil, transport.Refusal(protocol.ReasonMalformed, "migration %s has ended in the other way", d.uid)
	case d.confirmed == nil:
		d.moved = o.Moved
		d.confirmed = doOnce(s, func(ctx context.Context) (protocol.MigrationStep, error) {
			if o.Moved {
				s.confirmMoved(ctx, d, o.Cookie)
			} else {
				s.confirmStays(ctx, d)
				s.stay(ctx, d, &vmi.Finding{Reason: protocol.ReasonNotMoved, Message: "the target has destroyed the guest, which never ran there"})
			}
			return protocol.MigrationStep{UID: d.uid}, nil
		})
	}
	return d.confirmed, nil
}

// confirmMoved ends the domain here. Without the connection libvirt does not know the migration
// any more, and the domain is an ordinary one that is paused.
func (s *Supervisor) confirmMoved(ctx context.Context, d *departure, cookie []byte) {
	log := s.qemuLog()
	s.facts.change(func(f *facts) {
		f.moved = true
		if f.domain == launcher.Gone {
			f.exit = exit(libvirt.MovedAway, nil)
		}
		f.gone(log)
	})
	s.persist(ctx, "note that the guest has moved", func(context.Context) error { return s.keep(note{UID: d.uid, Stage: noteMoved}) })
	err := s.confirm(ctx, d, cookie, libvirt.Moved)
	if err != nil && !errors.Is(err, libvirt.ErrNotFound) {
		s.persist(ctx, "end the domain whose guest has moved", s.destroy)
	}
	d.close()
}

// confirmStays makes libvirt let the guest run here, if it knows the migration still.
func (s *Supervisor) confirmStays(ctx context.Context, d *departure) {
	_ = s.confirm(ctx, d, nil, libvirt.NotMoved) // logged; then the guest is resumed without libvirt's migration
}

// confirm reports the outcome to libvirt, on the connection of the migration.
func (s *Supervisor) confirm(ctx context.Context, d *departure, cookie []byte, was libvirt.Outcome) error {
	if d.conn == nil {
		return errors.New("another launcher had the connection of the migration")
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	err := d.conn.MigrateConfirm(ctx, s.domainName(), d.m, cookie, was)
	s.config.Logger.Info("confirm the migration", "uid", d.uid, "moved", was == libvirt.Moved, "err", err)
	return err
}
