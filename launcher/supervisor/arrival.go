package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/internal/launcher/libvirt"
	"github.com/podvisor/podvisor/internal/transport"
	"github.com/podvisor/podvisor/launcher"
	"github.com/podvisor/podvisor/launcher/domain"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

const (
	// finishWait is how long a guest of which everything has arrived waits for word that it shall
	// run. Without that word it never runs here.
	finishWait = 10 * time.Second
	// prepareTimeout is how long QEMU may take to start and to wait for a guest.
	prepareTimeout = time.Minute
)

// arrival is a migration at its target. It is guarded by the lock of moves.
type arrival struct {
	uid      types.UID
	settings protocol.MigrationSettings

	prepared *once[protocol.MigrationStep]
	// Set by prepared.
	conn *libvirt.Connection
	m    libvirt.Migration
	made created
	spec *vmi.VirtualMachineInstanceSpec

	finished  *once[protocol.MigrationStep] // nil: it was not asked for
	runs      chan struct{}                 // with finished; closed by run
	run       func()
	discarded *once[protocol.MigrationStep] // nil: the guest may run here yet

	streams int         // of the memory, that are open
	late    *time.Timer // nil: something of the memory is still to come
}

// receives says that a QEMU waits for the guest, or for the rest of it.
func (s *Supervisor) receives(a *arrival) bool {
	s.moves.mu.Lock()
	defer s.moves.mu.Unlock()
	return a.finished == nil && a.discarded == nil
}

// mayArrive is why no guest can arrive now.
func (f *facts) mayArrive() (protocol.Desired, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.desired == nil || !f.target || f.domain != launcher.Absent:
		return protocol.Desired{}, transport.Refusal(protocol.ReasonUnavailable, "this launcher waits for no guest")
	case !f.stopBy.IsZero():
		return protocol.Desired{}, errStopping
	}
	return *f.desired, nil
}

// stops says that the end of the launcher is asked for.
func (f *facts) stops() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.stopBy.IsZero()
}

// migrationPrepare makes a QEMU wait for the guest.
func (s *Supervisor) migrationPrepare(ctx context.Context, o protocol.MigrationPrepare) (protocol.MigrationStep, error) {
	a, err := s.arriving(o)
	if err != nil {
		return protocol.MigrationStep{}, err
	}
	return a.prepared.wait(ctx)
}

// arriving begins an arrival, or is the one of this UID.
func (s *Supervisor) arriving(o protocol.MigrationPrepare) (*arrival, error) {
	s.moves.mu.Lock()
	defer s.moves.mu.Unlock()
	if a := s.moves.to; a != nil {
		switch {
		case a.uid == o.UID && a.discarded != nil && (a.prepared == nil || a.prepared.over() && a.prepared.err == nil):
			return nil, notMoved(o.UID)
		case a.uid == o.UID:
			return a, nil
		case a.discarded == nil || !a.discarded.over():
			return nil, transport.Refusal(protocol.ReasonBusy, "this launcher waits for the guest of migration %s", a.uid)
		}
	}
	desired, err := s.facts.mayArrive()
	if err != nil {
		return nil, err
	}
	a := &arrival{uid: o.UID, settings: o.Settings}
	s.moves.to = a
	s.at(a.uid, protocol.MigrationReceives, "", nil)
	a.prepared = doOnce(s, func(ctx context.Context) (protocol.MigrationStep, error) {
		began := time.Now()
		step, err := s.receive(ctx, a, desired, o)
		s.config.Logger.Info("prepare for the guest", "uid", a.uid, "seconds", time.Since(began).Seconds(), "err", err)
		if err != nil {
			why := migrationFinding(err) // every further question has this answer
			s.moves.mu.Lock()
			defer s.moves.mu.Unlock()
			s.discard(a, why)
			return step, &vmi.Refusal{Finding: *why}
		}
		return step, nil
	})
	return a, nil
}

// notMoved is the answer that the guest never runs here.
func notMoved(uid types.UID) error {
	return transport.Refusal(protocol.ReasonNotMoved, "the guest of migration %s was destroyed here, and never ran here", uid)
}

// receive makes what the domain needs, and the QEMU that waits for the guest.
func (s *Supervisor) receive(ctx context.Context, a *arrival, desired protocol.Desired, o protocol.MigrationPrepare) (step protocol.MigrationStep, err error) {
	if o.Settings.PostCopy {
		if err := postCopyFault("/dev/userfaultfd", "/proc/sys/vm/unprivileged_userfaultfd"); err != nil {
			return step, err
		}
	}
	if err := s.keep(note{UID: a.uid, Stage: notePrepared}); err != nil {
		return step, err
	}
	d, made, err := s.furnish(ctx, desired, emptied(o.Disks))
	if err != nil {
		return step, err
	}
	if err := hide(o.Disks, made.attachments); err != nil {
		return step, err
	}
	if err := s.compare(ctx, o.Disks, made.attachments); err != nil {
		return step, err
	}
	if err := unpack(o.Disks, made.attachments); err != nil {
		return step, err
	}
	xml, err := domain.Moved(o.XML, d)
	if err != nil {
		return step, err
	}
	if a.conn, err = s.dialMigration(ctx); err != nil {
		return step, err
	}
	ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	a.m = s.migration(o.Settings, o.Disks)
	step.UID = a.uid
	step.Cookie, err = a.conn.MigratePrepare(ctx, s.domainName(), a.m, xml, o.Cookie)
	if err != nil {
		return step, err
	}
	a.spec = &desired.Instance.Spec
	made.arrived = true
	made.disks = nil
	for _, disk := range o.Disks {
		made.disks = append(made.disks, protocol.Disk{Name: disk.Name, Target: disk.Target, SizeBytes: disk.SizeBytes})
	}
	a.made = made
	return step, s.watchArrival(a)
}

// watchArrival discards a guest whose QEMU ends before it was asked to run. Later the end of QEMU
// is that of the domain.
func (s *Supervisor) watchArrival(a *arrival) error {
	pid, err := s.daemon.QEMU(s.domainName())
	if err != nil {
		return fmt.Errorf("find the process of QEMU: %w", err)
	}
	exited := s.reaper.Exited(pid)
	s.work.Go(func() {
		var status unix.WaitStatus
		select {
		case status = <-exited:
		case <-s.over:
			return
		}
		s.moves.mu.Lock()
		if a.finished == nil {
			s.discard(a, &vmi.Finding{Reason: protocol.ReasonMigrationFailed, Message: exit("", &status).Message + " while it waited for the guest: " + s.qemuLog().messages})
		}
		finished := a.finished != nil
		s.moves.mu.Unlock()
		if finished {
			s.ended(func(f *facts) { f.status = &status })
		}
	})
	return nil
}

// postCopyFault says why QEMU cannot do post-copy here: it has to handle page faults of its
// memory, by a device or as any process may.
func postCopyFault(device, switchFile string) error {
	f, err := os.OpenFile(device, os.O_RDWR, 0)
	if err == nil {
		return f.Close()
	}
	if b, unknown := os.ReadFile(switchFile); unknown == nil && strings.TrimSpace(string(b)) == "1" {
		return nil
	}
	return transport.Refusal(protocol.ReasonNoPostCopy, "post-copy needs userfaultfd at the target, which the pod does not have (%v): "+
		"forbid post-copy (allowPostCopy), or give the pod %s by a device plugin", err, device)
}

// connectArrival connects a stream to the QEMU that waits.
func (s *Supervisor) connectArrival(ctx context.Context, a *arrival, name protocol.Stream) (net.Conn, error) {
	if _, err := a.prepared.wait(ctx); err != nil {
		return nil, err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", s.migrationSocket(name))
	if err != nil {
		return nil, fmt.Errorf("connect to the QEMU that waits: %w", err)
	}
	if name != protocol.StreamMigrationMemory {
		return conn, nil
	}
	s.moves.mu.Lock()
	defer s.moves.mu.Unlock()
	if a.late != nil {
		a.late.Stop()
		a.late = nil
	}
	a.streams++
	return &incoming{conn.(*net.UnixConn), sync.OnceFunc(func() { s.arrived(a) })}, nil
}

// incoming is a connection that carries memory to the QEMU that waits.
type incoming struct {
	*net.UnixConn
	ended func()
}

// Close implements net.Conn.
func (c *incoming) Close() error {
	defer c.ended()
	return c.UnixConn.Close()
}

// arrived notes that a connection with memory has ended. When none is left everything is here, or
// the rest will not come: the guest is discarded unless it is asked to run soon.
func (s *Supervisor) arrived(a *arrival) {
	s.moves.mu.Lock()
	defer s.moves.mu.Unlock()
	if a.streams--; a.streams > 0 || a.finished != nil || a.discarded != nil {
		return
	}
	a.late = time.AfterFunc(s.finishWait, func() {
		s.moves.mu.Lock()
		defer s.moves.mu.Unlock()
		if a.late == nil || a.finished != nil {
			return
		}
		s.discard(a, &vmi.Finding{Reason: protocol.ReasonNotMoved, Message: fmt.Sprintf("the guest was not asked to run within %s after its memory had come", s.finishWait)})
	})
}

// migrationFinish lets the guest run here, or ends the QEMU that waits for it.
func (s *Supervisor) migrationFinish(ctx context.Context, o protocol.MigrationEnd) (protocol.MigrationStep, error) {
	finished, discarded, err := s.finishing(o)
	switch {
	case err != nil:
		return protocol.MigrationStep{}, err
	case finished != nil:
		return finished.wait(ctx)
	}
	step, err := discarded.wait(ctx)
	if err == nil && o.Moved {
		err = notMoved(o.UID)
	}
	return step, err
}

// finishing is one of the two ends of the arrival. Which it is, is decided once.
func (s *Supervisor) finishing(o protocol.MigrationEnd) (finished, discarded *once[protocol.MigrationStep], err error) {
	s.moves.mu.Lock()
	defer s.moves.mu.Unlock()
	a := s.moves.to
	switch {
	case a == nil || a.uid != o.UID:
		// No QEMU has ever waited here for this guest, or the note would say so.
		if _, err := s.facts.mayArrive(); a != nil && a.discarded == nil || err != nil && a == nil {
			return nil, nil, transport.Refusal(protocol.ReasonUnavailable, "migration %s does not end here", o.UID)
		}
		a = &arrival{uid: o.UID}
		s.moves.to = a
		s.discard(a, &vmi.Finding{Reason: protocol.ReasonNotMoved, Message: "no QEMU has waited for the guest"})
	case a.finished != nil && !o.Moved:
		return nil, nil, transport.Refusal(protocol.ReasonMalformed, "the guest of migration %s was asked to run here", o.UID)
	case a.finished != nil || a.discarded != nil:
	case !o.Moved:
		s.discard(a, &vmi.Finding{Reason: protocol.ReasonNotMoved, Message: "the guest stays where it is"})
	case !a.prepared.over():
		return nil, nil, transport.Refusal(protocol.ReasonBusy, "migration %s is still prepared", o.UID)
	case s.facts.stops():
		s.discard(a, &vmi.Finding{Reason: protocol.ReasonNotMoved, Message: "the launcher was stopped"})
	default:
		if a.late != nil {
			a.late.Stop()
		}
		s.expect(a)
		a.finished = doOnce(s, func(ctx context.Context) (protocol.MigrationStep, error) { return s.finish(ctx, a, o.Cookie) })
	}
	return a.finished, a.discarded, nil
}

// finish lets the guest run. It returns as soon as the guest does, while libvirt goes on with what
// it does afterwards: the peers of the guest wait for the answer. In a post-copy the source has a
// part of the guest until libvirt is done.
func (s *Supervisor) finish(ctx context.Context, a *arrival, cookie []byte) (protocol.MigrationStep, error) {
	s.config.Logger.Info("the guest is to run here", "uid", a.uid)
	whole := doOnce(s, func(ctx context.Context) (protocol.MigrationStep, error) { return s.finishWhole(ctx, a, cookie) })
	return a.answer(ctx, whole)
}

// answer is that to the question for the outcome, which whole does all for.
func (a *arrival) answer(ctx context.Context, whole *once[protocol.MigrationStep]) (protocol.MigrationStep, error) {
	runs := a.runs
	if a.settings.PostCopy {
		runs = nil
	}
	select {
	case <-runs:
		return protocol.MigrationStep{UID: a.uid}, nil
	case <-whole.done:
		return whole.value, whole.err
	case <-ctx.Done():
		return protocol.MigrationStep{}, context.Cause(ctx)
	}
}

// expect makes the arrival one whose guest may run from now on. The lock of moves is held.
func (s *Supervisor) expect(a *arrival) {
	a.runs = make(chan struct{})
	a.run = sync.OnceFunc(func() {
		s.config.Logger.Info("the guest runs here", "uid", a.uid)
		close(a.runs)
	})
}

// runsNow notes that the guest runs.
func (s *Supervisor) runsNow() {
	s.moves.mu.Lock()
	defer s.moves.mu.Unlock()
	if a := s.moves.to; a != nil && a.run != nil {
		a.run()
	}
}

// finishWhole does all that makes the guest run. One that cannot is discarded.
func (s *Supervisor) finishWhole(ctx context.Context, a *arrival, cookie []byte) (protocol.MigrationStep, error) {
	step := protocol.MigrationStep{UID: a.uid}
	var c carried
	err := json.Unmarshal(cookie, &c)
	if err == nil {
		err = receiveState(a.spec, c.Variables)
	}
	if err == nil {
		err = s.keep(note{UID: a.uid, Stage: noteFinishing})
	}
	if err == nil {
		s.facts.change(func(f *facts) {
			f.domain, f.status, f.resumed = launcher.Starting, nil, false
			f.forget() // what was of the domain before it is the guest's
		})
		m := a.m
		m.Paused = c.Paused
		_, err = a.conn.MigrateFinish(ctx, s.domainName(), m, c.Libvirt, libvirt.Moved)
	}
	if err != nil && !s.runsHere(ctx) {
		s.config.Logger.Error("the guest does not run here", "uid", a.uid, "err", err)
		s.moves.mu.Lock()
		s.discard(a, migrationFinding(err))
		discarded := a.discarded
		s.moves.mu.Unlock()
		if _, unknown := discarded.wait(ctx); unknown != nil {
			return step, unknown // the launcher ends
		}
		return step, notMoved(a.uid)
	}
	if err != nil {
		s.config.Logger.Warn("the guest runs here, but not as libvirt would have it", "uid", a.uid, "err", err)
	}
	s.settle(ctx, a, c)
	return step, nil
}

// runsHere says whether the guest runs here, or has run. libvirt may not answer for a while, and
// until then it is not known.
func (s *Supervisor) runsHere(ctx context.Context) bool {
	runs := false
	s.persist(ctx, "find out whether the guest runs", func(ctx context.Context) error {
		return s.call(ctx, func(ctx context.Context, c *libvirt.Connection) error {
			status, err := c.Status(ctx, s.domainName())
			if errors.Is(err, libvirt.ErrNotFound) {
				err = nil
			}
			runs = status.State == libvirt.Running
			return err
		})
	})
	if !runs {
		time.Sleep(forStatus) // an event may be on its way
	}
	s.facts.mu.Lock()
	defer s.facts.mu.Unlock()
	return runs || s.facts.resumed
}

// settle makes the domain one as any other, from whose start on the launcher is there.
func (s *Supervisor) settle(ctx context.Context, a *arrival, c carried) {
	made := a.made
	made.paused = c.Paused
	err := s.call(ctx, func(ctx context.Context, conn *libvirt.Connection) error {
		now, err := conn.Describe(ctx, s.domainName())
		if err == nil {
			made = made.described(now)
			made.emulated = now.Type != "kvm"
		}
		return err
	})
	if err != nil {
		s.config.Logger.Warn("the domain that has come is not known", "err", err)
	}
	log := s.qemuLog()
	var desired protocol.Desired
	s.facts.change(func(f *facts) {
		f.observed.Reboots, f.observed.Panics, f.observed.Frozen = c.Reboots, c.Panics, c.Frozen
		if c.Paused {
			f.call = protocol.CallPause // as it was called for there
		}
		s.started(f, made, log)
		f.migration = &protocol.Migration{UID: a.uid, Stage: protocol.MigrationArrived}
		desired = *f.desired
	})
	s.config.Logger.Info("the guest has come", "uid", a.uid, "paused", c.Paused)
	if err := errors.Join(s.keep(note{UID: a.uid, Stage: protocol.MigrationArrived}), s.waits(false)); err != nil {
		s.config.Logger.Warn("note that the guest has come", "err", err)
	}
	time.AfterFunc(arrivedAfter, func() {
		if err := s.alone(); err != nil {
			s.config.Logger.Warn("note that the guest has come alone", "err", err)
		}
	})
	_ = a.conn.Close() // fails if the daemon has ended it
	s.keepTPM(desired)
	s.agent.notice()
	s.measureDisks()
	s.hashLater(made.attachments)
	if c.Frozen {
		s.thaw.set(time.AfterFunc(thawAfter, s.thawNow))
	}
}

// discard ends the QEMU that waits, whose guest never runs. That it does not is known for good
// before it is said. The lock of moves is held.
func (s *Supervisor) discard(a *arrival, why *vmi.Finding) {
	if a.discarded != nil {
		return
	}
	if a.late != nil {
		a.late.Stop()
	}
	a.discarded = doOnce(s, func(ctx context.Context) (protocol.MigrationStep, error) {
		if a.prepared != nil {
			if _, err := a.prepared.wait(ctx); ctx.Err() != nil {
				return protocol.MigrationStep{}, err
			}
		}
		if a.conn != nil {
			limited, cancel := context.WithTimeout(ctx, callTimeout)
			_, err := a.conn.MigrateFinish(limited, s.domainName(), a.m, nil, libvirt.NotMoved)
			cancel()
			s.config.Logger.Debug("end the QEMU that waits", "err", err) // libvirt returns one in any case
		}
		done := s.persist(ctx, "destroy the guest that does not run here", s.destroy) && s.persist(ctx, "note that the guest never ran here", func(context.Context) error {
			return errors.Join(forgetState(), s.keep(note{UID: a.uid, Stage: protocol.MigrationDiscarded}))
		})
		if !done {
			return protocol.MigrationStep{}, errStopping
		}
		if a.conn != nil {
			_ = a.conn.Close() // fails if the daemon has ended it
		}
		s.facts.change(func(f *facts) {
			f.domain, f.status, f.resumed = launcher.Absent, nil, false
			f.forget()
			f.migration = &protocol.Migration{UID: a.uid, Stage: protocol.MigrationDiscarded, Finding: why}
		})
		s.config.Logger.Info("the guest was destroyed and never ran here", "uid", a.uid, "finding", why)
		return protocol.MigrationStep{UID: a.uid}, nil
	})
}

// actDiscard discards the guest that the launcher waits for, because it is to end.
func (s *Supervisor) actDiscard() {
	s.moves.mu.Lock()
	defer s.moves.mu.Unlock()
	if a := s.moves.to; a != nil && a.finished == nil {
		s.discard(a, &vmi.Finding{Reason: protocol.ReasonNotMoved, Message: "the launcher was stopped"})
	}
}

// waitsFile is there while the launcher waits for a guest, for its probes.
const waitsFile = "waits"

func waitsPath(root string) string { return filepath.Join(root, vmi.PrivateDir, waitsFile) }

const (
	// arrivedFile is there once the guest has arrived and the pod that it has left is not ready.
	arrivedFile = "arrived"
	// arrivedAfter is when that is so without a word of the handler, which may be away. The launcher
	// that the guest has left ends before.
	arrivedAfter = 20 * time.Second
)

func arrivedPath(root string) string { return filepath.Join(root, vmi.PrivateDir, arrivedFile) }

// waits notes whether the launcher waits for a guest.
func (s *Supervisor) waits(yes bool) error {
	if yes {
		return os.WriteFile(waitsPath(s.config.Root), nil, 0o600)
	}
	if err := os.Remove(waitsPath(s.config.Root)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// await makes a launcher wait whose pod is a target: for its probes, and with the hashes of what a
// guest that comes is compared with. It notes that the guest has arrived alone: virt-controller
// takes the label away when no Service leads to the pod that the guest has left.
func (s *Supervisor) await(d protocol.Desired) error {
	s.facts.mu.Lock()
	waits := d.Role == vmi.RoleTarget && s.facts.domain == launcher.Absent
	runs := s.facts.target && d.Role != vmi.RoleTarget // by the status of the VMI
	s.facts.mu.Unlock()
	switch {
	case waits:
		s.hashImages()
		return s.waits(true)
	case runs && d.Instance.Labels[vmi.MigrationTargetNodeLabel] == "":
		return s.alone()
	}
	return nil
}

// alone notes that the guest has arrived, and that no Service leads to where it was.
func (s *Supervisor) alone() error { return os.WriteFile(arrivedPath(s.config.Root), nil, 0o600) }

// hashImages hashes the images that are in the pod, if it is a target.
func (s *Supervisor) hashImages() {
	s.facts.mu.Lock()
	images, target := s.facts.images, s.facts.target
	s.facts.mu.Unlock()
	if !target {
		return
	}
	for _, i := range images {
		s.hashes.begin(i.Path).hurry.Store(true)
	}
}
