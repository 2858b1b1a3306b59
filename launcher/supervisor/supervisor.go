package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/internal/launcher/console"
	"github.com/podvisor/podvisor/internal/launcher/process"
	"github.com/podvisor/podvisor/launcher"
	"github.com/podvisor/podvisor/launcher/control"
	"github.com/podvisor/podvisor/launcher/domain"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/storage/volume"
	"github.com/podvisor/podvisor/vmi"
)

const (
	// endTimeout is how long the launcher waits for a handler to read the end.
	endTimeout = 2 * time.Second
	// outputTimeout is how long it waits for the console to be written.
	outputTimeout = time.Second
)

// Config is what a [Supervisor] needs.
type Config struct {
	// Namespace, Name and UID are those of the VMI. Required.
	Namespace, Name string
	UID             types.UID

	// FailFast makes New fail, as the VMI's annotation vmi.FailFastAnnotation asks for.
	FailFast bool
	// GracePeriod is how long the guest may take to power off when the context
	// of Run ends. 0: it is switched off at once.
	GracePeriod time.Duration

	// AllowEmulation lets the guest run without KVM.
	AllowEmulation bool

	// Root is the folder that takes the place of the pod's root, with the folders
	// that vmi has names of, such as [vmi.SocketsDir], below it. Sockets are in it, so
	// its path must have at most 32 bytes. Empty: the process is in the pod.
	Root string

	// Disks are the attachments of volumes, by the names of the volumes, that are not
	// where a pod has them. Nil: each volume is where a pod has it.
	Disks map[string]storage.Attachment

	// Inspector inspects the images of container disks. A limit of memory that the
	// cluster sets takes the place of its own. The zero value does it in this process.
	Inspector Inspector

	// Parts are the kinds of devices that the domain is built of. Nil: [domain.Parts].
	Parts []domain.Part

	// VolumeKinds are the kinds of volumes that are served. Nil: [volume.Kinds].
	VolumeKinds []volume.Kind

	// Calls are what the launcher answers beside the calls of launcher/protocol, by their
	// names, which have a domain in them, such as flush.example.com. A program that reaches
	// launchers makes them by scheduler/guest. They get options as JSON, or nothing, and
	// return what is encoded as the answer, or nil; errors are those of
	// control.ServerConfig. They may be called at the same time, before the domain is there
	// too, and are safe to repeat. Nil: there are none.
	Calls map[protocol.Call]func(ctx context.Context, options []byte) (any, error)

	// Console is written what the guest writes to its serial port. Nil: it is
	// dropped.
	Console io.Writer

	// Input is what is typed into the guest's serial port. A read that waits when
	// Run returns goes on waiting. Nil: nothing is typed.
	Input io.Reader

	// Started is called once, when the guest runs for the first time. It must not wait. Nil:
	// nothing is.
	Started func()

	// RequireState starts no guest whose state of firmware and TPM has not come here by a
	// migration: what is in their folders is not made anew.
	RequireState bool

	// TerminationLog is the file that gets the reason of the end, for the
	// kubelet. Empty: none does.
	TerminationLog string

	// Logger logs what the launcher does. Nil: nothing is logged.
	Logger *slog.Logger

	// LogLevel is that of the Logger, and becomes what the cluster sets. Nil: it
	// cannot be changed.
	LogLevel *slog.LevelVar
}

// maxRoot is the longest path of a Root: a socket's path has at most 107 bytes.
const maxRoot = 32

// Supervisor is the first process of a VMI's pod. There is one in a process, and
// it runs once.
type Supervisor struct {
	config  Config
	facts   *facts
	reaper  *process.Reaper
	daemon  *process.Daemon
	session *session
	agent   *agent
	serial  *console.Serial
	server  *control.Server

	credentials *credentials

	// They are the constants of these names, except in tests.
	endTimeout, finishWait time.Duration

	prepared    chan preparation // what is made before it is asked for, once
	cancelStart context.CancelFunc
	tried       bool            // the daemon was asked to create the domain
	addresses   map[string]bool // interfaces whose guests are offered addresses
	work        sync.WaitGroup
	over        chan struct{} // closed when the domain has ended
	thaw        thaw
	rebooting   sync.Mutex // held while the agent is asked to reboot the guest
	counting    sync.Mutex // held while the agent is asked what it counts
	screens     screens
	moves       moves
	hashes      hashes
	inner       context.Context // that of Run, without its end
	published   protocol.State
	ran         bool // a guest that runs was published
}

// New returns a supervisor.
func New(c Config) (*Supervisor, error) {
	if c.Namespace == "" || c.Name == "" || c.UID == "" {
		return nil, errors.New("a launcher needs the namespace, name and UID of its VMI")
	}
	if c.FailFast {
		return nil, fmt.Errorf("the VMI has the annotation %s, which makes its launcher fail", vmi.FailFastAnnotation)
	}
	if len(c.Root) > maxRoot {
		return nil, fmt.Errorf("root %s of the launcher has %d bytes, and at most %d leave room for the names of sockets", c.Root, len(c.Root), maxRoot)
	}
	if err := wrongCall(c); err != nil {
		return nil, err
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	// As the logs of virt-controller and virt-handler name it.
	c.Logger = c.Logger.With("vmi", c.Namespace+"/"+c.Name)
	if c.Console == nil {
		c.Console = io.Discard
	}
	if c.LogLevel == nil {
		c.LogLevel = &slog.LevelVar{}
	}
	r, err := process.NewReaper()
	if err != nil {
		return nil, fmt.Errorf("become the reaper: %w", err)
	}
	s := &Supervisor{
		config: c, facts: newFacts(), reaper: r, endTimeout: endTimeout, finishWait: finishWait,
		prepared: make(chan preparation, 1), cancelStart: func() {}, addresses: map[string]bool{}, over: make(chan struct{}),
	}
	s.daemon = process.NewDaemon(process.Config{Dir: daemonDir(c.Root), Reaper: r, Logger: c.Logger})
	s.session = &session{
		socket: s.daemon.Socket(), logger: c.Logger, ready: make(chan struct{}),
		up: s.connected, down: s.disconnected, event: s.happened, late: s.unanswered, answered: s.answered, hung: s.replaceDaemon,
	}
	s.hashes = hashes{logger: c.Logger, run: func(do func(context.Context)) { s.work.Go(func() { do(s.inner) }) }}
	s.agent = &agent{look: s.lookAtAgent, changed: make(chan struct{}, 1)}
	s.credentials = &credentials{read: s.readCredentials, doubts: s.credentialDoubts, write: s.writeCredentials}
	s.serial = &console.Serial{Socket: domain.SerialSocket(s.privateDir())}
	s.server = control.NewServer(control.ServerConfig{
		Namespace: c.Namespace, Name: c.Name, UID: c.UID, Logger: c.Logger,
		Put: s.Put, Stats: s.stats,
		Calls: map[protocol.Call]func(context.Context) error{
			protocol.CallPause:   s.calling(protocol.CallPause),
			protocol.CallUnpause: s.calling(protocol.CallUnpause),
			protocol.CallDestroy: s.endAtOnce,
		},
		Questions: s.answers(),
		Streams: map[protocol.Stream]func(context.Context) (net.Conn, error){
			protocol.StreamConsole:      s.serial.Open,
			protocol.StreamScreen:       s.openScreen,
			protocol.StreamScreenIfFree: s.openScreenIfFree,
			protocol.StreamScreenshot:   s.openScreenshot,

			protocol.StreamMigrationMemory: s.openMigration(protocol.StreamMigrationMemory),
			protocol.StreamMigrationDisks:  s.openMigration(protocol.StreamMigrationDisks),
		},
		Port: s.openPort,
	})
	// Who asks before there is more to say does not take it for a launcher that cannot move.
	s.server.Publish(protocol.State{Phase: protocol.Waiting, Movable: true})
	return s, nil
}

// Put makes d the Desired in force. It is what the handler does over the control
// socket. It may be called from any goroutine, before Run too.
func (s *Supervisor) Put(d protocol.Desired) error {
	level := slog.LevelInfo
	if d.Settings.Verbosity.Debug() {
		level = slog.LevelDebug
	}
	s.config.LogLevel.Set(level)
	s.facts.put(d, time.Now())
	s.measureDisks()
	return s.await(d)
}

// Run runs the domain from the first Desired to its end and returns how it ended.
// When ctx ends, the guest is asked to power off and has the grace period to do so.
// An error means that there could be no domain.
func (s *Supervisor) Run(ctx context.Context) (protocol.End, error) {
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.inner = inner
	var background sync.WaitGroup
	defer background.Wait()
	defer s.work.Wait()
	defer s.thaw.set(nil)
	defer cancel()
	background.Go(func() { s.reaper.Run(inner) })

	if err := s.recall(); err != nil {
		return protocol.End{}, fmt.Errorf("read the note of the last migration: %w", err)
	}
	l, err := listen(s.config.Root)
	if err != nil {
		return protocol.End{}, fmt.Errorf("listen for the handler: %w", err)
	}
	s.config.Logger.Info("listening for the handler")
	background.Go(func() {
		if err := s.server.Serve(inner, l); err != nil {
			s.config.Logger.Error("serve the handler", "err", err)
		}
	})
	if err := errors.Join(os.MkdirAll(s.privateDir(), 0o700), s.daemon.Prepare()); err != nil {
		return protocol.End{}, fmt.Errorf("prepare the folders of the VMI: %w", err)
	}
	daemonContext, stopDaemon := context.WithCancel(inner)
	defer stopDaemon()
	var daemonDone sync.WaitGroup
	daemonDone.Go(func() { s.daemon.Run(daemonContext) })
	background.Go(func() { s.session.run(inner) })
	background.Go(func() { s.prepare(inner) })
	background.Go(func() { s.agent.run(inner) })
	background.Go(func() { s.followGuest(inner) })
	background.Go(func() { s.followQEMU(inner) })
	background.Go(func() { s.credentials.run(inner, s.lookAtSecrets) })
	if s.config.Input != nil {
		go s.typeIn(inner) // not in the background: no read of a terminal can be ended
	}

	c, err := console.OpenLog(s.consolePath(), &console.Firmware{Out: s.config.Console, First: s.wrote, Failed: s.firmwareFailed})
	if err != nil {
		return protocol.End{}, fmt.Errorf("open the log of the console: %w", err)
	}
	defer context.AfterFunc(ctx, func() {
		s.facts.change(func(f *facts) { f.terminate(time.Now().Add(s.config.GracePeriod)) })
		s.config.Logger.Info("the end is asked for", "grace", s.config.GracePeriod)
	})()

	end := s.loop(inner)
	s.config.Logger.Info("the domain ended", "reason", end.Reason, "message", end.Message)
	written := c.Close()
	s.conclude(end)
	within(s.server.Drained(), s.endTimeout)
	within(written, outputTimeout)
	stopDaemon()
	daemonDone.Wait()
	return end, nil
}

// loop observes, decides and acts until the end.
func (s *Supervisor) loop(ctx context.Context) protocol.End {
	for {
		desired, actual := s.facts.observe(time.Now())
		actual.Session.Message = s.daemon.Failure()
		plan := launcher.Decide(desired, actual)
		s.publish(plan.State)
		if err := s.act(ctx, plan); err != nil {
			s.config.Logger.Error("act", "err", err)
		}
		if plan.State.End != nil {
			return *plan.State.End
		}
		var again <-chan time.Time
		if plan.Recheck > 0 {
			again = time.After(plan.Recheck)
		}
		select {
		case <-s.facts.wake:
		case <-again:
		}
	}
}
