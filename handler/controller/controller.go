package controller

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/util/workqueue"

	"github.com/podvisor/podvisor/handler"
	"github.com/podvisor/podvisor/handler/stream"
	"github.com/podvisor/podvisor/internal/handler/socket"
	"github.com/podvisor/podvisor/internal/metrics"
	"github.com/podvisor/podvisor/internal/reconcile"
	"github.com/podvisor/podvisor/launcher/control"
	"github.com/podvisor/podvisor/launcher/protocol"
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
	// KubeletPods is the kubelet's folder of pods. Empty: /var/lib/kubelet/pods.
	KubeletPods string
	// Dial connects to the launcher of the pod with this UID. It must not follow
	// a path that the pod can change. Nil: to its socket below KubeletPods.
	Dial func(ctx context.Context, podUID string) (net.Conn, error)
	// Exists says whether the kubelet has something of the pod with this UID on the node,
	// which may run. Nil: by KubeletPods, or, where Dial is set, something is always left.
	Exists func(podUID string) (bool, error)
	// Launchers are the UIDs of the pods on the node with a launcher that may answer. Nil: by
	// KubeletPods, or none where Dial is set.
	Launchers func() ([]types.UID, error)
	// Bind binds the network of a VMI in the pod that the launcher is in. Binding again
	// what is bound changes nothing. Nil: by Bindings, in the pod's network namespace.
	Bind func(ctx context.Context, launcher *control.Client, v *vmi.VirtualMachineInstance) (network.Config, error)
	// Bindings are how interfaces may be bound to the networks of their pod. Nil:
	// [network.Bindings].
	Bindings []network.Binding
	// Certificate is what the handler shows the handlers of the nodes that its VMIs move to:
	// that of its own server of streams. Zero: they refuse it, so no VMI moves from the node.
	Certificate stream.Certificate
	// Settings is the cluster's configuration; the caller runs it. The Controller
	// does nothing while KubeVirt itself is installed. Nil: the default
	// configuration.
	Settings *live.Watcher
	// Workers is how many VMIs are handled at the same time. 0: 16.
	Workers int
	// Metrics takes the metrics of the work queue and the number of VMIs that cannot be
	// decoded, while Run runs. Controllers of one process need labels of their own: see
	// [prometheus.WrapRegistererWith]. Nil: there are none.
	Metrics prometheus.Registerer
	// Logger takes a line for each action, and what client-go logs of the caches. Nil:
	// the Controller logs nothing, and client-go to klog.
	Logger *slog.Logger
}

// Controller handles the VMIs of one node.
type Controller struct {
	config Config
	once   reconcile.Once
	// collectors are the metrics that are registered while it runs.
	collectors []prometheus.Collector
	log        *slog.Logger
	caches     reconcile.Caches
	instances  informer.Informer[*vmi.VirtualMachineInstance] // that run on the node
	targets    informer.Informer[*vmi.VirtualMachineInstance] // that move to the node
	writer     *reconcile.Writer[*vmi.VirtualMachineInstance, *vmi.VirtualMachineInstanceList]
	events     *reconcile.Events
	loop       *reconcile.Loop
	synced     atomic.Bool
	timing     timing
	budgets    budgets
	guard      *guard
	holders    holders
	migrations migrations
	binder     *binder // nil: Config.Bind is another's
	// open are the sessions and those that were ended and complete a task.
	open sync.WaitGroup

	mu       sync.Mutex
	sessions map[sessionKey]*session
	// cancels end the sessions at once, also those that were ended.
	cancels map[*session]context.CancelFunc
}

// New makes a Controller. It starts nothing until it runs. The error names each field of
// Config that is to be set.
func New(c Config) (*Controller, error) {
	if err := reconcile.Missing("controller.Config", map[string]bool{"Node": c.Node == "", "Client": c.Client == nil, "Events": c.Events == nil}); err != nil {
		return nil, err
	}
	var b *binder
	if c.Bind == nil {
		b = &binder{bindings: c.Bindings}
		c.Bind = b.bind
	}
	c.KubeletPods = cmp.Or(c.KubeletPods, "/var/lib/kubelet/pods")
	c.Workers = cmp.Or(c.Workers, 16)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	k := &Controller{
		config: c, binder: b, log: c.Logger, sessions: map[sessionKey]*session{}, cancels: map[*session]context.CancelFunc{},
		timing: timing{heartbeat: handler.HeartbeatPeriod, answer: handler.AnswerTimeout, now: time.Now},
	}
	k.guard = newGuard(k)
	all := c.Client.VirtualMachineInstances(metav1.NamespaceAll)
	var err error
	if k.instances, err = informer.NewFiltered(all, informer.Selection{NodeName: c.Node}); err != nil {
		return nil, err
	}
	if k.targets, err = informer.NewFiltered(all, informer.Selection{TargetNode: c.Node}); err != nil {
		return nil, err
	}
	k.writer = reconcile.NewWriter(c.Client, vmi.VirtualMachineInstances)
	k.writer.Whole = func(*vmi.VirtualMachineInstance) bool { return true }
	var queues workqueue.MetricsProvider
	if c.Metrics != nil {
		q := metrics.NewQueues()
		queues, k.collectors = q, []prometheus.Collector{q, metrics.Unreadable(vmi.VirtualMachineInstances.Plural, k.Unreadable)}
	}
	// KubeVirt names the work queue so.
	k.loop = reconcile.New(reconcile.Config{Name: "virt-handler-vm", Do: k.reconcile, Workers: c.Workers, Metrics: queues, Logger: c.Logger, LogKey: "vmi"})
	k.events, err = reconcile.NewEvents(reconcile.EventsConfig{Client: c.Events, Component: component, Node: c.Node, Logger: c.Logger})
	// Launchers are put the spec, and the status is compared as a whole.
	kept := reconcile.Cached[*vmi.VirtualMachineInstance]{Keep: reconcile.WithoutApplied[*vmi.VirtualMachineInstance]}
	err = errors.Join(err,
		reconcile.Cache(&k.caches, k.instances, reconcile.Cached[*vmi.VirtualMachineInstance]{Keep: func(v *vmi.VirtualMachineInstance) {
			kept.Keep(v)
			k.noteOver(v)
		}}),
		reconcile.Cache(&k.caches, k.targets, kept),
		reconcile.Watch(k.instances, k.loop, func(v *vmi.VirtualMachineInstance) []string {
			k.noteHolder(v)
			return reconcile.Itself(v)
		}, nil),
		reconcile.Watch(k.targets, k.loop, reconcile.Itself[*vmi.VirtualMachineInstance], nil))
	if err != nil {
		return nil, err
	}
	if c.Metrics != nil {
		k.collectors = append(k.collectors, metrics.EventsDropped(k.events.Dropped))
	}
	return k, nil
}

// Ready returns why the Controller does not do its work, or nil. Restarting it does
// not help. It is not ready while the API server does not answer, and from then on until no
// guest runs on the node whose VMI does not run in its pod: the node may have been fenced
// meanwhile, and the VMI have been started elsewhere. Such guests are ended.
func (c *Controller) Ready() error {
	if s := c.config.Settings; s != nil {
		if err := s.Ready(); err != nil {
			return err
		}
	}
	if !c.synced.Load() {
		return errors.New("the VMIs of the node are not listed yet")
	}
	return c.guard.ready()
}

// Unreadable is how many of the VMIs of the node cannot be decoded.
func (c *Controller) Unreadable() int { return len(c.instances.Lister().Unreadable()) }

// Run handles VMIs until ctx ends and everything that was begun has ended. It is called
// once: a second call is an error. Another one is that the kubelet's folder of pods cannot
// be opened.
func (c *Controller) Run(ctx context.Context) error {
	if err := c.once.Begin("controller of the node"); err != nil {
		return err
	}
	unregister, err := metrics.Register(c.config.Metrics, c.collectors...)
	if err != nil {
		return err
	}
	defer unregister()
	if c.config.Dial == nil {
		pods, err := socket.Open(c.config.KubeletPods)
		if err != nil {
			return err
		}
		defer pods.Close()
		c.config.Dial = pods.Dial
		if c.config.Exists == nil {
			c.config.Exists = pods.Exists
		}
		if c.config.Launchers == nil {
			c.config.Launchers = pods.Launchers
		}
	}
	if c.config.Exists == nil {
		c.config.Exists = func(string) (bool, error) { return true, nil }
	}
	ctx = reconcile.WithClientLog(ctx, c.log)
	defer c.events.Begin(ctx)()
	var wg sync.WaitGroup
	defer wg.Wait()
	if s := c.config.Settings; s != nil {
		defer s.OnChange(c.reconfigured)()
		if !s.Wait(ctx) {
			return nil // ctx has ended
		}
	}
	wg.Go(func() { c.guard.run(ctx) })
	wg.Go(func() { c.caches.Run(ctx) })
	if !c.caches.Wait(ctx) {
		return nil // ctx has ended
	}
	c.guard.doubt() // a VMI may have moved before it was listed, and after the guard has looked
	c.synced.Store(true)
	c.loop.Run(ctx)
	c.migrations.close()
	c.closeAll()
	return nil
}

// reconfigured queues every VMI, and those that were deleted while KubeVirt was
// installed.
func (c *Controller) reconfigured() {
	for _, i := range []informer.Informer[*vmi.VirtualMachineInstance]{c.instances, c.targets} {
		for _, key := range i.GetIndexer().ListKeys() {
			c.loop.Add(key)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for k := range c.sessions {
		c.loop.Add(k.vmi)
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
func (c *Controller) reconcile(ctx context.Context, key string) (after time.Duration, err error) {
	if c.config.Settings != nil && c.config.Settings.OtherInstallation() != "" {
		return 0, nil
	}
	v := c.instance(key)
	if v != nil {
		c.noteOver(v) // what it was when it was written may be newer than what is cached
	}
	if v == nil || v.Status.Phase.Final() {
		c.budgets.drop(key)
	}
	do := func(p handler.Pod, s *session) {
		wait, failed := c.reconcilePod(ctx, key, v, p, s)
		if err = errors.Join(err, failed); wait > 0 && (after == 0 || wait < after) {
			after = wait
		}
	}
	pods := handler.Pods(v, c.config.Node)
	for _, s := range c.others(key, pods) {
		do(handler.Pod{}, s)
	}
	for _, p := range pods {
		do(p, c.session(key, p.UID))
	}
	return after, err
}

// reconcilePod does what is to be done for one pod of a VMI, with which there may be a
// session.
func (c *Controller) reconcilePod(ctx context.Context, key string, v *vmi.VirtualMachineInstance, p handler.Pod, s *session) (time.Duration, error) {
	cluster, seen := c.settings(), 0
	o := handler.Observed{Instance: v, Node: c.config.Node, Pod: p, Now: c.timing.now(), Settings: cluster.Launcher, Agents: cluster.Agents, Bindings: c.config.Bindings}
	if s != nil {
		seen = s.seen()
		o.Session = s.observe()
		o.Session.Move = c.migrations.move(s.podUID)
	}
	if v != nil && p.UID != "" && p.Role == vmi.RoleActive && begins(o.Session) {
		o.Beside = c.beside(ctx, key, v, p.UID)
		s.hold(o.Beside != nil, o.Now)
		move := o.Session.Move
		o.Session = s.observe()
		o.Session.Move = move
	}
	if v != nil && v.Status.PodRemoved() && p.UID != "" && p.Role == vmi.RoleActive {
		o.NothingLeft = c.nothingLeft(p.UID)
	}
	return c.act(ctx, key, s, o, handler.Decide(o), seen)
}

// nothingLeft reports whether nothing of the pod is left on the node.
func (c *Controller) nothingLeft(pod types.UID) bool {
	there, err := c.config.Exists(string(pod))
	if err != nil {
		c.log.Error("look what is left of a pod that was removed", "pod", pod, "err", err)
	}
	return err == nil && !there
}

// instance is the VMI with this key, with defaults applied, by the caches and own writes.
// Nil: it neither runs on this node nor moves to it.
func (c *Controller) instance(key string) *vmi.VirtualMachineInstance {
	v := c.writer.Latest(key, c.cached(key))
	if v == nil {
		return nil
	}
	p := c.settings().Defaults
	p.Architecture = runtime.GOARCH
	return defaults.Instance(v, p)
}

// cached is the VMI with this key. One that has just arrived is in both caches for a
// moment, of which one may be behind.
func (c *Controller) cached(key string) *vmi.VirtualMachineInstance {
	v, moves := c.instances.Lister().Key(key), c.targets.Lister().Key(key)
	if v == nil || moves != nil && reconcile.Older(v, moves) {
		return moves
	}
	return v
}

// sessionKey is what a session is for: a pod of a VMI. Two VMIs whose statuses name the
// same pod have a session each, and the launcher refuses what is not its own VMI.
type sessionKey struct {
	vmi string // its key
	pod types.UID
}

// session returns the session with the launcher in a pod of the VMI, or nil if there is
// none.
func (c *Controller) session(key string, pod types.UID) *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sessions[sessionKey{key, pod}]
}

// others are the sessions of a VMI with launchers in other pods than these.
func (c *Controller) others(key string, pods []handler.Pod) []*session {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []*session
	for k, s := range c.sessions {
		if k.vmi == key && !slices.ContainsFunc(pods, func(p handler.Pod) bool { return p.UID == k.pod }) {
			out = append(out, s)
		}
	}
	return out
}

// noteOver notes of a VMI that virt-controller has ended it, since the node was fenced: a VM
// deletes it at once, and then nothing says so. The cache must not have it before: a session
// would end that leaves a guest running.
func (c *Controller) noteOver(v *vmi.VirtualMachineInstance) {
	if v.Status.Phase != vmi.PhaseFailed || v.Status.Reason != vmi.ReasonNodeUnresponsive {
		return
	}
	for uid := range v.Status.ActivePods {
		if s := c.session(reconcile.Key(v), uid); s != nil {
			s.mu.Lock()
			s.over = true
			s.mu.Unlock()
		}
	}
}

// connect starts a session.
func (c *Controller) connect(ctx context.Context, key string, pod types.UID) {
	s := newSession(pod, c.config.Dial, c.timing, c.log.With("vmi", key), func() { c.loop.Add(key) })
	// The session outlives this call, but not the Controller, which ends it.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c.mu.Lock()
	c.sessions[sessionKey{key, pod}], c.cancels[s] = s, cancel
	c.mu.Unlock()
	c.open.Go(func() {
		s.live(ctx)
		cancel()
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.cancels, s)
	})
}

// disconnect ends a session of the VMI. It does not wait for it.
func (c *Controller) disconnect(key string, s *session) {
	c.mu.Lock()
	delete(c.sessions, sessionKey{key, s.podUID})
	c.mu.Unlock()
	state := s.observe().State
	if state != nil && state.Phase == protocol.Ended {
		c.holders.drop(s.podUID)
	}
	if runs := c.migrations.forget(s.podUID); !runs && (state == nil || s.isSent()) {
		c.guard.doubt() // whether the guest has moved, which the launcher does not find out
	}
	s.end()
}

func (c *Controller) closeAll() {
	c.mu.Lock()
	for _, cancel := range c.cancels {
		cancel()
	}
	c.sessions = map[sessionKey]*session{}
	c.mu.Unlock()
	c.open.Wait()
}
