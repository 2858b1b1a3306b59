package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/internal/launcher/libvirt"
	"github.com/podvisor/podvisor/internal/transport"
	"github.com/podvisor/podvisor/launcher"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// moves are the migrations that the launcher takes part in. The lock is taken before that of
// the facts.
type moves struct {
	mu   sync.Mutex
	from *departure // the last that begins here; nil: none has
	to   *arrival   // the one that ends here; nil: there is none
}

// The sockets of QEMU's connections. Their names are short: the path of a socket has at most
// 107 bytes.
const (
	memorySocket = "virt-memory"
	disksSocket  = "virt-disks"
)

func (s *Supervisor) migrationSocket(name protocol.Stream) string {
	if name == protocol.StreamMigrationDisks {
		return filepath.Join(s.privateDir(), disksSocket)
	}
	return filepath.Join(s.privateDir(), memorySocket)
}

// migrationCalls are the calls of migrations that launchers have.
func (s *Supervisor) migrationCalls() map[protocol.Call]func(context.Context, []byte) (any, error) {
	return map[protocol.Call]func(context.Context, []byte) (any, error){
		protocol.CallMigrationBegin:   migrating(s.migrationBegin),
		protocol.CallMigrationPerform: migrating(s.migrationPerform),
		protocol.CallMigrationConfirm: migrating(s.migrationConfirm),
		protocol.CallMigrationAbort:   migrating(s.migrationAbort),
		protocol.CallMigrationPrepare: migrating(s.migrationPrepare),
		protocol.CallMigrationFinish:  migrating(s.migrationFinish),
	}
}

// migrating is what makes a call with the options that it has.
func migrating[O, A any](call func(context.Context, O) (A, error)) func(context.Context, []byte) (any, error) {
	return func(ctx context.Context, b []byte) (any, error) {
		var o O
		if err := json.Unmarshal(b, &o); err != nil {
			return nil, transport.Refusal(protocol.ReasonMalformed, "the options of a migration cannot be read: %v", err)
		}
		a, err := call(ctx, o)
		if err != nil {
			return nil, err
		}
		return a, nil
	}
}

// openMigration opens a stream of a migration: at the target to the QEMU that waits, at the
// source with the next connection of QEMU.
func (s *Supervisor) openMigration(name protocol.Stream) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		s.moves.mu.Lock()
		from, to := s.moves.from, s.moves.to
		s.moves.mu.Unlock()
		switch {
		case to != nil && s.receives(to):
			return s.connectArrival(ctx, to, name)
		case from != nil:
			return from.gate(name).next(ctx)
		}
		return nil, transport.Refusal(protocol.ReasonUnavailable, "no migration is under way")
	}
}

// once is what is done once, however often it is asked for.
type once[T any] struct {
	done  chan struct{}
	value T
	err   error
}

// doOnce begins it in the background. It goes on when who asked is gone.
func doOnce[T any](s *Supervisor, do func(context.Context) (T, error)) *once[T] {
	o := &once[T]{done: make(chan struct{})}
	s.work.Go(func() {
		defer close(o.done)
		o.value, o.err = do(s.inner)
	})
	return o
}

// wait is its outcome.
func (o *once[T]) wait(ctx context.Context) (T, error) {
	select {
	case <-o.done:
		return o.value, o.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

// over says that it is done.
func (o *once[T]) over() bool {
	select {
	case <-o.done:
		return true
	default:
		return false
	}
}

// carried is what the launcher of the source gives that of the target when everything is sent.
type carried struct {
	// Libvirt is libvirt's cookie.
	Libvirt []byte `json:"libvirt,omitempty"`
	// Paused says that the user has paused the guest, which stays so.
	Paused bool `json:"paused,omitempty"`
	// What is counted and known of the guest from its start on.
	Reboots int64 `json:"reboots,omitempty"`
	Panics  int64 `json:"panics,omitempty"`
	Frozen  bool  `json:"frozen,omitempty"`
	// Variables are those of the firmware if they outlast the pod, as gzip compresses them.
	Variables []byte `json:"variables,omitempty"`
}

// byUser says that the guest is paused and that the user has asked for it.
func (f *facts) byUser() bool {
	return f.call == protocol.CallPause || f.domain == launcher.Paused && f.pause.Cause == protocol.PausedByUser
}

// moving is the migration that is under way.
func (f *facts) moving() protocol.Migration {
	if f.migration == nil || f.moved {
		return protocol.Migration{}
	}
	return *f.migration
}

// at notes where the migration stands.
func (s *Supervisor) at(uid types.UID, stage protocol.MigrationStage, mode vmi.MigrationMode, why *vmi.Finding) {
	s.facts.change(func(f *facts) {
		f.migration = &protocol.Migration{UID: uid, Stage: stage, Mode: mode, Finding: why}
	})
	s.config.Logger.Info("the migration", "uid", uid, "stage", stage, "mode", mode, "finding", why)
}

// migrationFinding is why a migration failed.
func migrationFinding(err error) *vmi.Finding {
	f := vmi.Finding{Reason: protocol.ReasonMigrationFailed, Message: err.Error()}
	if r := (*vmi.Refusal)(nil); errors.As(err, &r) {
		f = r.Finding
	}
	return &f
}

// migration is how libvirt moves the domain.
func (s *Supervisor) migration(settings protocol.MigrationSettings, disks []protocol.MigrationDisk) libvirt.Migration {
	m := libvirt.Migration{
		URI:          "unix://" + s.migrationSocket(protocol.StreamMigrationMemory),
		MiBPerSecond: settings.MiBPerSecond, Connections: settings.Connections,
		AutoConverge: settings.AutoConverge, PostCopy: settings.PostCopy,
	}
	for _, d := range disks {
		if d.Copied {
			m.Disks = append(m.Disks, d.Target)
			m.DisksURI = "unix://" + s.migrationSocket(protocol.StreamMigrationDisks)
		}
	}
	return m
}

// dialTimeout is how long the daemon may take to take another connection.
const dialTimeout = 15 * time.Second

// dialMigration connects to the daemon for the calls of one migration: they may take long, and
// libvirt ends a migration with its connection.
func (s *Supervisor) dialMigration(ctx context.Context) (*libvirt.Connection, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	return dial(ctx, s.daemon.Socket())
}

// again is the time after which what has to succeed is tried again.
const again = 200 * time.Millisecond

// persist tries until it succeeds, or until the launcher ends. What fails is logged.
func (s *Supervisor) persist(ctx context.Context, what string, try func(context.Context) error) bool {
	for {
		err := try(ctx)
		if err == nil {
			return true
		}
		s.config.Logger.Warn(what, "err", err)
		select {
		case <-time.After(again):
		case <-s.over:
			return false
		case <-ctx.Done():
			return false
		}
	}
}
