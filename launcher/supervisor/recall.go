package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"
	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/internal/launcher/libvirt"
	"github.com/podvisor/podvisor/launcher"
	"github.com/podvisor/podvisor/launcher/domain"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// note is what a launcher that is started again has to know of a migration.
type note struct {
	UID   types.UID               `json:"uid"`
	Stage protocol.MigrationStage `json:"stage"`
	// Cookie is the answer to the last step that has one.
	Cookie []byte `json:"cookie,omitempty"`
}

// The stages in a note that no other process reads.
const (
	// notePrepared: a QEMU waits, or waited, and its guest was not asked to run.
	notePrepared = protocol.MigrationReceives
	// noteFinishing: the guest was asked to run, and may have run.
	noteFinishing protocol.MigrationStage = "Finishing"
	// noteMoved: the guest runs in another pod.
	noteMoved protocol.MigrationStage = "Moved"
)

func (s *Supervisor) notePath() string { return filepath.Join(s.privateDir(), "migration.json") }

// keep writes a note such that it is there after a crash, also of the node.
func (s *Supervisor) keep(n note) error {
	b, err := json.Marshal(n)
	if err != nil {
		return err
	}
	path := s.notePath()
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(unix.Fsync(int(dir.Fd())), dir.Close())
}

// kept is the note that was kept last. It is not ok if there is none.
func (s *Supervisor) kept() (n note, ok bool, err error) {
	b, err := os.ReadFile(s.notePath())
	if errors.Is(err, fs.ErrNotExist) {
		return note{}, false, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &n)
	}
	return n, err == nil, err
}

// recall takes up the migration that a launcher took part in which ran here before. A guest that
// may run elsewhere is neither started nor resumed.
func (s *Supervisor) recall() error {
	n, ok, err := s.kept()
	if err != nil || !ok {
		return err
	}
	s.config.Logger.Info("the launcher was started again during a migration", "uid", n.UID, "stage", n.Stage)
	s.moves.mu.Lock()
	defer s.moves.mu.Unlock()
	step := protocol.MigrationStep{UID: n.UID, Cookie: n.Cookie}
	switch n.Stage {
	case notePrepared, protocol.MigrationDiscarded:
		a := &arrival{uid: n.UID}
		s.moves.to = a
		s.discard(a, &vmi.Finding{Reason: protocol.ReasonNotMoved, Message: "the launcher was started again"})
	case noteFinishing, protocol.MigrationArrived:
		s.moves.to = &arrival{uid: n.UID, prepared: known(step), finished: known(step)}
		s.facts.change(func(f *facts) { f.target = true })
		s.adopt(n.UID, protocol.MigrationArrived)
	case protocol.MigrationSent:
		s.moves.from = &departure{uid: n.UID, begun: known(protocol.MigrationBegun{}), performed: known(step)}
		s.adopt(n.UID, protocol.MigrationSent)
	case noteMoved:
		s.facts.change(func(f *facts) { f.domain, f.moved, f.exit = launcher.Gone, true, exit(libvirt.MovedAway, nil) })
	}
	return nil
}

// known is what was done before.
func known[T any](value T) *once[T] {
	o := &once[T]{done: make(chan struct{}), value: value}
	close(o.done)
	return o
}

// adopt finds out, in the background, what has become of the domain meanwhile. Until then no other
// is started.
func (s *Supervisor) adopt(uid types.UID, stage protocol.MigrationStage) {
	s.facts.change(func(f *facts) {
		f.domain = launcher.Starting
		f.migration = &protocol.Migration{UID: uid, Stage: stage}
	})
	s.work.Go(func() {
		s.persist(s.inner, "find the domain that was here before", func(ctx context.Context) error {
			return s.call(ctx, func(ctx context.Context, c *libvirt.Connection) error {
				status, err := c.Status(ctx, s.domainName())
				if errors.Is(err, libvirt.ErrNotFound) {
					s.facts.change(func(f *facts) {
						f.domain = launcher.Gone
						f.exit = launcher.Exit{Cause: launcher.Crashed, Message: "QEMU ended while no launcher ran"}
					})
					return nil
				}
				if err != nil {
					return err
				}
				now, err := c.Describe(ctx, s.domainName())
				if err != nil {
					return err
				}
				s.adopted(now, status)
				return nil
			})
		})
	})
}

// adopted notes a domain that was here before.
func (s *Supervisor) adopted(now *libvirtxml.Domain, status libvirt.Status) {
	made := created{emulated: now.Type != "kvm", disks: adoptedDisks(now), arrived: true}
	made = made.described(now)
	log := s.qemuLog()
	s.facts.change(func(f *facts) {
		if f.desired != nil {
			made.devices = actualDevices(now, desiredDevices(f.desired.Instance), made.disks)
		}
		if status.State == libvirt.Paused && f.pause.Cause == "" {
			f.pause.Cause = status.Pause
		}
		s.started(f, made, log)
	})
	s.watchQEMU(s.domainName())
	s.agent.notice()
}

// adoptedDisks are the disks of a domain by the names that they have in the spec.
func adoptedDisks(now *libvirtxml.Domain) []protocol.Disk {
	var all []protocol.Disk
	if now.Devices == nil {
		return nil
	}
	for _, d := range now.Devices.Disks {
		if d.Alias == nil || d.Target == nil {
			continue
		}
		if name, ok := strings.CutPrefix(d.Alias.Name, domain.DiskAlias("")); ok {
			all = append(all, protocol.Disk{Name: name, Target: d.Target.Dev})
		}
	}
	return all
}
