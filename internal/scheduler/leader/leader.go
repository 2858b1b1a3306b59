package leader

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"

	"github.com/podvisor/podvisor/scheduler/controller"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
)

// Config is the configuration of a Leader. All of it is required.
type Config struct {
	// Launcher is what launcher pods are made with, and ContainerDisks and Version are by
	// which controller.Detect completes it.
	Launcher       pod.Launcher
	ContainerDisks string
	Version        discovery.ServerVersionInterface
	// Make makes a Controller.
	Make func(pod.Launcher) (*controller.Controller, error)
	// Lease says which process leads.
	Lease controller.Lease
	// Logger takes what is waited for.
	Logger *slog.Logger
}

// Leader has the Controller of a process. It is made by [New] and run once. Its methods may be
// called from any goroutine, and before it runs.
type Leader struct {
	cfg Config
	now atomic.Pointer[controller.Controller] // nil: not yet
}

// New makes a Leader. It sends nothing.
func New(c Config) *Leader { return &Leader{cfg: c} }

// Run waits until the API server answers, and leads, term after term, until ctx ends.
func (l *Leader) Run(ctx context.Context) error {
	launcher, err := controller.Detect(ctx, l.cfg.Launcher, l.cfg.ContainerDisks, &versions{ServerVersionInterface: l.cfg.Version, log: l.cfg.Logger})
	if ctx.Err() != nil {
		err = nil // it was waited for
	}
	for err == nil && ctx.Err() == nil {
		err = l.term(ctx, launcher)
	}
	return err
}

// term leads until ctx ends or the lease is lost, which is no error.
func (l *Leader) term(ctx context.Context, launcher pod.Launcher) error {
	c, err := l.cfg.Make(launcher)
	if err != nil {
		return err
	}
	l.now.Store(c)
	led, ended := false, error(nil)
	err = controller.Lead(ctx, l.cfg.Lease, func(ctx context.Context) error {
		led, ended = true, c.Run(ctx)
		return ended
	})
	if err != nil && led && ended == nil {
		l.cfg.Logger.Warn("wait to lead again", "err", err)
		err = nil
	}
	return err
}

var errVersion = errors.New("the version of the API server is not known yet")

// Ready says why the Controller does not do its work, if it does not.
func (l *Leader) Ready() error {
	if c := l.now.Load(); c != nil {
		return c.Ready()
	}
	return errVersion
}

// QueueAll queues every object: what could not be done may be possible now.
func (l *Leader) QueueAll() {
	if c := l.now.Load(); c != nil {
		c.QueueAll()
	}
}

// Cached is [controller.Controller.Cached]. Nil: there is no Controller.
func (l *Leader) Cached(namespace, name string) (*corev1.Pod, *vmi.VirtualMachineInstance) {
	if c := l.now.Load(); c != nil {
		return c.Cached(namespace, name)
	}
	return nil, nil
}

// AsRendered is [controller.Controller.AsRendered]. Nil: there is no Controller.
func (l *Leader) AsRendered(namespace, name string) (*vmi.VirtualMachineInstance, pod.Facts) {
	if c := l.now.Load(); c != nil {
		return c.AsRendered(namespace, name)
	}
	return nil, pod.Facts{}
}

// Creating is [controller.Controller.Creating]. Nil: there is no Controller.
func (l *Leader) Creating(namespace, pod, instance string, uid types.UID) *corev1.Pod {
	if c := l.now.Load(); c != nil {
		return c.Creating(namespace, pod, instance, uid)
	}
	return nil
}

// Rendering is [controller.Controller.Rendering]. Without a Controller no build is its.
func (l *Leader) Rendering(build string) (pod.Config, bool) {
	if c := l.now.Load(); c != nil {
		return c.Rendering(build)
	}
	return pod.Config{}, false
}
