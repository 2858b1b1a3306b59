package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/launcher"
	"github.com/podvisor/podvisor/launcher/control"
	"github.com/podvisor/podvisor/vmi"
)

const (
	// lastLook is how long the launcher waits for a handler to read the end.
	lastLook = 2 * time.Second
	// lastOutput is how long it waits for the console to be taken.
	lastOutput = time.Second
)

// unixEpoch is a deadline that is over.
var unixEpoch = time.Unix(0, 0)

// Config is what a [Supervisor] needs.
type Config struct {
	// Namespace, Name and UID are those of the machine. Required.
	Namespace, Name string
	UID             types.UID

	// GracePeriod is how long the guest may take to power off when the context
	// of Run ends. 0: it is switched off at once.
	GracePeriod time.Duration

	// AllowEmulation lets the guest run without KVM.
	AllowEmulation bool

	// Console takes what the guest writes to its serial port. Nil: nobody does.
	Console io.Writer

	// TerminationLog is the file that takes the reason of the end, for the
	// kubelet. Empty: none does.
	TerminationLog string

	// Logger takes what the launcher does. Nil: nothing is logged.
	Logger *slog.Logger

	// LogLevel is that of the Logger, and becomes what the cluster says. Nil: it
	// cannot be changed.
	LogLevel *slog.LevelVar
}

// Supervisor is the first process of a machine's pod. There is one in a
// process, and it runs once.
type Supervisor struct {
	config  Config
	facts   *facts
	reaper  *reaper
	daemon  *daemon
	session *session
	agent   *agent
	server  *control.Server

	cancelStart context.CancelFunc
	tried       bool            // the daemon was told to create the domain
	addresses   map[string]bool // interfaces whose guests are offered addresses
	work        sync.WaitGroup
	over        chan struct{}   // closed when the end is told
	inner       context.Context // that of Run, without its end
	told        control.State
}

// New returns a supervisor.
func New(c Config) (*Supervisor, error) {
	if c.Namespace == "" || c.Name == "" || c.UID == "" {
		return nil, errors.New("a launcher needs the namespace, name and UID of its machine")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Console == nil {
		c.Console = io.Discard
	}
	if c.LogLevel == nil {
		c.LogLevel = &slog.LevelVar{}
	}
	r, err := newReaper()
	if err != nil {
		return nil, fmt.Errorf("become the reaper: %w", err)
	}
	s := &Supervisor{config: c, facts: newFacts(), reaper: r, cancelStart: func() {}, addresses: map[string]bool{}, over: make(chan struct{})}
	s.daemon = &daemon{dir: filepath.Join(vmi.PrivateDir, "libvirt"), reaper: r, logger: c.Logger}
	s.session = &session{socket: s.daemon.socket(), logger: c.Logger, up: s.connected, event: s.happened, ready: make(chan struct{})}
	s.agent = &agent{look: s.lookAtAgent, changed: make(chan struct{}, 1)}
	s.server = control.NewServer(control.ServerConfig{
		Namespace: c.Namespace, Name: c.Name, UID: c.UID, Logger: c.Logger,
		Put: s.want,
	})
	return s, nil
}

// want takes what the handler wants.
func (s *Supervisor) want(d control.Desired) error {
	level := slog.LevelInfo
	if d.Settings.Verbosity.Debug() {
		level = slog.LevelDebug
	}
	s.config.LogLevel.Set(level)
	s.facts.want(d, time.Now())
	return nil
}

// Run runs the machine from the handler's wish to its end and says how it
// ended. When ctx ends, the guest is asked to power off and has the grace
// period to do so. An error means that there could be no machine.
func (s *Supervisor) Run(ctx context.Context) (control.End, error) {
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.inner = inner
	var background sync.WaitGroup
	defer background.Wait()
	defer s.work.Wait()
	defer cancel()
	background.Go(func() { s.reaper.run(inner) })

	l, err := listen()
	if err != nil {
		return control.End{}, fmt.Errorf("listen for the handler: %w", err)
	}
	background.Go(func() {
		if err := s.server.Serve(inner, l); err != nil {
			s.config.Logger.Error("the control socket is lost", "err", err)
		}
	})
	if err := errors.Join(os.MkdirAll(filepath.Dir(s.consolePath()), 0o700), s.daemon.prepare()); err != nil {
		return control.End{}, fmt.Errorf("prepare the folders of the machine: %w", err)
	}
	daemonContext, stopDaemon := context.WithCancel(inner)
	defer stopDaemon()
	var daemonDone sync.WaitGroup
	daemonDone.Go(func() { s.daemon.run(daemonContext) })
	background.Go(func() { s.session.run(inner) })
	background.Go(func() { s.agent.run(inner) })

	c, err := openConsole(s.consolePath(), s.config.Console)
	if err != nil {
		return control.End{}, fmt.Errorf("open the console: %w", err)
	}
	defer context.AfterFunc(ctx, func() {
		s.config.Logger.Info("asked to end", "grace", s.config.GracePeriod)
		s.facts.change(func(f *facts) { f.stop(time.Now().Add(s.config.GracePeriod)) })
	})()

	end := s.loop(inner)
	s.config.Logger.Info("the machine ended", "reason", end.Reason, "message", end.Message)
	close(s.over)
	written := c.close()
	s.conclude(end)
	within(s.server.Drained(), lastLook)
	within(written, lastOutput)
	stopDaemon()
	daemonDone.Wait()
	return end, nil
}

// loop observes, decides and acts until the end.
func (s *Supervisor) loop(ctx context.Context) control.End {
	for {
		plan := launcher.Decide(s.facts.observe(time.Now()))
		state := s.facts.published(plan)
		s.publish(state)
		if state.End != nil {
			return *state.End
		}
		s.act(ctx, plan)
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
