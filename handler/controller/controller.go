package controller

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/util/workqueue"

	"github.com/podvisor/podvisor/handler"
	"github.com/podvisor/podvisor/internal/reconcile"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/informer"
	"github.com/podvisor/podvisor/vmi/config"
	"github.com/podvisor/podvisor/vmi/config/live"
	"github.com/podvisor/podvisor/vmi/defaults"
)

// component is what the events come from.
const component = "virt-handler"

// Config is what a Controller needs.
type Config struct {
	// Node is the name of the node. Required.
	Node string
	// Client reads and writes VMIs. Required.
	Client *client.Client
	// Events writes events. Required.
	Events corev1client.EventsGetter
	// Dial connects to the launcher of the pod with this UID. It must not follow
	// a path that the pod can change; socket.Pods does not. Required.
	Dial func(ctx context.Context, podUID string) (net.Conn, error)
	// Bind binds the network of a VMI in its pod. Nil: [BindNetwork] with Bindings.
	Bind Binder
	// Bindings are how interfaces may be bound to the networks of their pod. Nil:
	// [network.Bindings].
	Bindings []network.Binding
	// Settings is the cluster's configuration; the caller runs it. The Controller
	// does nothing while KubeVirt itself is installed. Nil: the default
	// configuration.
	Settings *live.Watcher
	// Workers is how many VMIs are handled at the same time. 0: 16.
	Workers int
	// Metrics takes the metrics of the work queue. Nil: there are none.
	Metrics workqueue.MetricsProvider
	// Logger takes a line for each action. Nil: nothing is logged.
	Logger *slog.Logger
}

// Controller handles the VMIs of one node.
type Controller struct {
	config    Config
	log       *slog.Logger
	caches    reconcile.Caches
	instances informer.Informer[*vmi.VirtualMachineInstance]
	writer    *reconcile.Writer[*vmi.VirtualMachineInstance, *vmi.VirtualMachineInstanceList]
	events    *reconcile.Events
	loop      *reconcile.Loop
	synced    atomic.Bool
	timing    timing
	budgets   budgets
	// open are the sessions and those that were ended and complete a task.
	open sync.WaitGroup

	mu       sync.Mutex
	sessions map[string]*session // by the key of the VMI
	// cancels end the sessions at once, also those that were ended.
	cancels map[*session]context.CancelFunc
}

// New makes a Controller.
func New(c Config) (*Controller, error) {
	if c.Node == "" || c.Client == nil || c.Events == nil || c.Dial == nil {
		return nil, errors.New("the handler's controller needs Node, Client, Events and Dial")
	}
	if c.Bind == nil {
		c.Bind = BindNetwork(c.Bindings)
	}
	if c.Workers == 0 {
		c.Workers = 16
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	k := &Controller{
		config: c, log: c.Logger, sessions: map[string]*session{}, cancels: map[*session]context.CancelFunc{},
		timing: timing{heartbeat: handler.HeartbeatPeriod, answer: handler.AnswerTimeout, now: time.Now},
	}
	k.instances = informer.New(c.Client.VirtualMachineInstances(metav1.NamespaceAll), informer.Selection{NodeName: c.Node})
	k.writer = reconcile.NewWriter(c.Client.VirtualMachineInstances)
	// KubeVirt names the work queue so.
	k.loop = reconcile.New(reconcile.Config{Name: "virt-handler-vm", Do: k.reconcile, Workers: c.Workers, Metrics: c.Metrics, Logger: c.Logger})
	var err error
	k.events, err = reconcile.NewEvents(reconcile.EventsConfig{Client: c.Events, Component: component, Node: c.Node, Logger: c.Logger})
	err = errors.Join(err,
		reconcile.Cache(&k.caches, k.instances, reconcile.Cached[*vmi.VirtualMachineInstance]{}),
		reconcile.Watch(k.instances, k.loop, reconcile.Itself[*vmi.VirtualMachineInstance], nil))
	if err != nil {
		return nil, err
	}
	return k, nil
}

// Ready returns why the Controller does not do its work, or nil. Restarting it does
// not help.
func (c *Controller) Ready() error {
	if s := c.config.Settings; s != nil {
		if err := s.Ready(); err != nil {
			return err
		}
	}
	if !c.synced.Load() {
		return errors.New("the VMIs of the node are not listed yet")
	}
	return nil
}

// Unreadable is how many of the VMIs of the node cannot be decoded.
func (c *Controller) Unreadable() int { return len(c.instances.Unreadable()) }

// Run handles VMIs until ctx ends and everything that was begun has ended.
func (c *Controller) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	if s := c.config.Settings; s != nil {
		s.OnChange(c.reconfigured)
		if !s.Wait(ctx) {
			return nil // ctx has ended
		}
	}
	wg.Go(func() { c.caches.Run(ctx) })
	if !c.caches.Wait(ctx) {
		return nil // ctx has ended
	}
	c.synced.Store(true)
	c.loop.Run(ctx)
	c.closeAll()
	return nil
}

// reconfigured queues every VMI, and those that were deleted while KubeVirt was
// installed.
func (c *Controller) reconfigured() {
	for _, key := range c.instances.GetIndexer().ListKeys() {
		c.loop.Add(key)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.sessions {
		c.loop.Add(key)
	}
}

// settings is the configuration now.
func (c *Controller) settings() config.Config {
	if c.config.Settings == nil {
		return config.Config{}
	}
	return c.config.Settings.Config()
}

// reconcile does what is to be done for one VMI. While KubeVirt itself is installed
// that is nothing: the VMIs are KubeVirt's, and guests that run are not affected.
func (c *Controller) reconcile(ctx context.Context, key string) (time.Duration, error) {
	if c.config.Settings != nil && c.config.Settings.Foreign() != "" {
		return 0, nil
	}
	s, seen := c.session(key), 0
	if s != nil {
		seen = s.seen()
	}
	o := c.observe(key, s)
	return c.act(ctx, key, s, o, handler.Decide(o), seen)
}

func (c *Controller) observe(key string, s *session) handler.Observed {
	cluster := c.settings()
	o := handler.Observed{Node: c.config.Node, Now: c.timing.now(), Settings: cluster.Launcher, Agents: cluster.Agents}
	if s != nil {
		o.Session = s.observe()
	}
	if v := c.writer.Latest(key, c.instances.Key(key)); v != nil {
		p := cluster.Defaults
		p.Architecture = runtime.GOARCH
		o.Instance = defaults.Apply(v, p)
	}
	if o.Instance == nil || o.Instance.Status.Phase.Final() {
		c.budgets.drop(key)
	}
	return o
}

// session returns the session of a VMI, or nil if there is none.
func (c *Controller) session(key string) *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sessions[key]
}

// connect starts a session.
func (c *Controller) connect(ctx context.Context, key, podUID string) {
	s := newSession(podUID, c.config.Dial, c.timing, c.log.With("vmi", key), func() { c.loop.Add(key) })
	// The session outlives this call, but not the Controller, which ends it.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c.mu.Lock()
	c.sessions[key], c.cancels[s] = s, cancel
	c.mu.Unlock()
	c.open.Go(func() {
		s.live(ctx)
		cancel()
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.cancels, s)
	})
}

// disconnect ends a session, if there is one. It does not wait for it.
func (c *Controller) disconnect(key string) {
	c.mu.Lock()
	s := c.sessions[key]
	delete(c.sessions, key)
	c.mu.Unlock()
	if s != nil {
		s.end()
	}
}

func (c *Controller) closeAll() {
	c.mu.Lock()
	for _, cancel := range c.cancels {
		cancel()
	}
	c.sessions = map[string]*session{}
	c.mu.Unlock()
	c.open.Wait()
}
