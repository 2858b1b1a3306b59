package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"

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

// Config is what a Controller needs.
type Config struct {
	// Node is the name of the node. Required.
	Node string
	// Client reads and writes machines. Required.
	Client *client.Client
	// Events writes events. Required.
	Events corev1client.EventsGetter
	// Dial connects to the launcher of the pod with this UID. It must not follow
	// a path that the pod can change; socket.Pods does not. Required.
	Dial func(ctx context.Context, podUID string) (net.Conn, error)
	// Plumb makes the network of a machine in its pod. Nil: [BindNetwork] with
	// Bindings.
	Plumb Plumber
	// Bindings are how interfaces may be bound to the networks of their pod. Nil:
	// [network.Bindings].
	Bindings []network.Binding
	// Settings is the cluster's configuration, which somebody runs. The Controller
	// does nothing while KubeVirt itself is installed. Nil: the configuration is
	// the default one for ever.
	Settings *live.Watcher
	// Workers is how many machines are handled at the same time. 0: 16.
	Workers int
	// Logger takes a line for each action. Nil: nothing is logged.
	Logger *slog.Logger
}

// Controller handles the machines of one node.
type Controller struct {
	config   Config
	log      *slog.Logger
	machines informer.Informer[*vmi.VirtualMachineInstance]
	loop     *reconcile.Loop
	synced   atomic.Bool

	mu       sync.Mutex
	sessions map[string]*session // by the key of the machine
}

// New makes a Controller.
func New(c Config) (*Controller, error) {
	if c.Node == "" || c.Client == nil || c.Events == nil || c.Dial == nil {
		return nil, errors.New("a node's controller needs the node's name, a client, a writer of events and a way to reach launchers")
	}
	if c.Plumb == nil {
		c.Plumb = BindNetwork(c.Bindings)
	}
	if c.Workers == 0 {
		c.Workers = 16
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	k := &Controller{config: c, log: c.Logger, sessions: map[string]*session{}}
	k.machines = informer.New(c.Client.VirtualMachineInstances(metav1.NamespaceAll), informer.Selection{NodeName: c.Node})
	k.loop = reconcile.New(reconcile.Config{Name: "machines", Do: k.reconcile, Workers: c.Workers, Logger: c.Logger})
	return k, nil
}

// Ready says why the Controller does not do its work, if it does not. Starting it
// again would not help.
func (c *Controller) Ready() error {
	if s := c.config.Settings; s != nil {
		if err := s.Ready(); err != nil {
			return err
		}
	}
	if !c.synced.Load() {
		return errors.New("the machines of the node are not known yet")
	}
	return nil
}

// Run handles machines until ctx ends and everything that was begun has ended.
func (c *Controller) Run(ctx context.Context) error {
	queue := func(o any) {
		if name, err := cache.DeletionHandlingObjectToName(o); err == nil {
			c.loop.Add(name.String())
		}
	}
	if _, err := c.machines.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: queue, DeleteFunc: queue, UpdateFunc: func(_, o any) { queue(o) },
	}); err != nil {
		return fmt.Errorf("watch machines: %w", err)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	if s := c.config.Settings; s != nil {
		s.OnChange(c.reconfigured)
		if !s.Wait(ctx) {
			return nil // ctx has ended
		}
	}
	wg.Go(func() { c.machines.RunWithContext(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), c.machines.HasSynced) {
		return nil // ctx has ended
	}
	c.synced.Store(true)
	c.loop.Run(ctx)
	c.closeAll()
	return nil
}

// reconfigured looks at every machine again, and at those that went while
// nothing was done for any.
func (c *Controller) reconfigured() {
	for _, key := range c.machines.GetIndexer().ListKeys() {
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

// reconcile does what is to be done for one machine. While KubeVirt itself is
// installed that is nothing: the machines are its own, and those that were ours
// run on as they are.
func (c *Controller) reconcile(ctx context.Context, key string) (time.Duration, error) {
	if c.config.Settings != nil && c.config.Settings.Foreign() != "" {
		return 0, nil
	}
	s := c.session(key)
	o := c.observe(key, s)
	p := handler.Decide(o)
	return p.Recheck, c.act(ctx, key, s, o, p)
}

func (c *Controller) observe(key string, s *session) handler.Observed {
	cluster := c.settings()
	o := handler.Observed{Now: time.Now(), Settings: cluster.Launcher, Agents: cluster.Agents}
	v := c.machines.Key(key)
	if s != nil {
		v = s.newest(v)
		o.Link = s.observe()
	}
	if v != nil {
		p := cluster.Defaults
		p.Architecture = runtime.GOARCH
		o.Instance = defaults.Apply(v, p)
	}
	return o
}

// session returns the session of a machine, or nil if there is none.
func (c *Controller) session(key string) *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sessions[key]
}

// connect begins a session.
func (c *Controller) connect(ctx context.Context, key, podUID string) {
	s := newSession(podUID, c.config.Dial, func() { c.loop.Add(key) })
	c.mu.Lock()
	c.sessions[key] = s
	c.mu.Unlock()
	// The session outlives this call, but not the Controller, which closes it.
	s.start(context.WithoutCancel(ctx), c.log.With("vmi", key))
}

// disconnect ends a session, if there is one.
func (c *Controller) disconnect(key string) {
	c.mu.Lock()
	s := c.sessions[key]
	delete(c.sessions, key)
	c.mu.Unlock()
	if s != nil {
		s.close()
	}
}

func (c *Controller) closeAll() {
	c.mu.Lock()
	all := c.sessions
	c.sessions = map[string]*session{}
	c.mu.Unlock()
	for _, s := range all {
		s.close()
	}
}
