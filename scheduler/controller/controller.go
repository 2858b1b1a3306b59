package controller

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"

	"github.com/podvisor/podvisor/internal/expiring"
	"github.com/podvisor/podvisor/internal/metrics"
	"github.com/podvisor/podvisor/internal/reconcile"
	"github.com/podvisor/podvisor/internal/version"
	"github.com/podvisor/podvisor/scheduler/guest"
	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/config"
	"github.com/podvisor/podvisor/vmi/config/live"
)

// Config is the configuration of a Controller.
type Config struct {
	// Client reads and writes the kinds of package vmi. Required.
	Client *client.Client
	// Kube reads and writes everything else. Required.
	Kube kubernetes.Interface
	// Dynamic reads and creates DataVolumes, where the API server serves them, and
	// reads the NetworkAttachmentDefinitions of VMIs. Nil: VMs with dataVolumeTemplates
	// are not started, and the resources that networks need are to be named in the VMIs.
	Dynamic dynamic.Interface
	// Launcher is what launcher pods are made with. Its Image is required.
	Launcher pod.Launcher
	// Settings is the cluster's configuration. The caller runs it. Its status is
	// written by the Controller, and the Controller does nothing while KubeVirt
	// itself is installed. Nil: the configuration is always Cluster.
	Settings *live.Watcher
	// Cluster is the cluster's configuration without Settings. The zero value is the
	// default one. With Settings it is not used.
	Cluster config.Config
	// Guests reach the launchers of VMIs: what a kind asks of a guest, or has it do, goes
	// through it. No kind does yet. Without nodes, every call is refused as unavailable.
	Guests guest.Guests
	// Handlers reach the handlers of nodes, which move VMIs. Nil: every migration fails when it
	// is to begin.
	Handlers Handlers
	// Kinds are reconciled besides VMIs and the built-in [Kinds]. The API server must serve
	// them, and the account of Client needs its rights on them.
	// With any, VMIs are cached whole; without, what is not read after their hand-over is dropped.
	Kinds []Kind
	// Home is the namespace that virt-handler is installed in. Its pods say on which
	// nodes VMIs can be looked after, and its progress is a part of the status of
	// the KubeVirt. Required with Settings. Empty: virt-handler is not observed.
	Home string
	// Version is in the status of the KubeVirt, as "v1.2.3". Empty: the version of the
	// module in this program.
	Version string
	// Guarded reports whether the deletion of Podvisor is refused while there are
	// VMIs. While it is not, VMIs have no finalizer: nothing could remove it once
	// Podvisor is deleted. Call QueueAll after each change. Nil: it always is.
	Guarded func() bool
	// Namespace limits the Controller to one namespace. Empty: all.
	Namespace string
	// Workers is how many objects of a kind are handled at the same time. 0: 32, which
	// is more than fifty VMIs per second also where each request takes a tenth of one.
	Workers int
	// Metrics takes the metrics of the work queues, the number of VMIs that cannot be
	// decoded, and the series of VMs, VMIs and migrations, while Run runs. Controllers of one process need labels of their own: see
	// [prometheus.WrapRegistererWith]. Nil: there are none.
	Metrics prometheus.Registerer
	// Logger takes a line for each thing done, and what client-go logs of the caches. Nil:
	// the Controller logs nothing, and client-go to klog.
	Logger *slog.Logger
	// Now is the clock. Nil: time.Now.
	Now func() time.Time
}

// Controller reconciles the objects of all kinds of the cluster side, over one
// set of caches. It is made by New and run once.
type Controller struct {
	cfg    Config
	log    *slog.Logger
	once   reconcile.Once
	queues workqueue.MetricsProvider // nil: there are no metrics
	// collectors are the metrics that are registered while it runs.
	collectors []prometheus.Collector
	events     *reconcile.Events
	keeper     keeper
	caches     *caches
	// downtimes are since when virt-handler has not been ready, by node. The time is
	// lost with the process, and is counted anew then.
	downtimes expiring.Map[string, time.Time]
	made      made
	rendered  rendered
	gates     gates
	claims    claims
	sweeper   *sweeper
	updater   *updater
	kinds     map[string]looper // by their names
	instances *loopOf[*vmi.VirtualMachineInstance, *vmi.VirtualMachineInstanceList]
	// madeInstances are VMIs that were created for others and that the cache may not
	// have yet.
	madeInstances reconcile.Made[*vmi.VirtualMachineInstance]
	owned         *owned
	// madeVMs are VMs that were created for pools and that the cache may not have yet.
	madeVMs       reconcile.Made[*vmi.VirtualMachine]
	pooled        *pooled
	joins         []func() error // what is to be done when all loops are there
	migrations    migrations
	deleted       recent // VMIs, pods and revisions
	dataVolumes   *dataVolumes
	statusWritten recent
	// revisions are those whose content was read: start revisions by their UID, and those of
	// what VMs name by their key.
	revisions expiring.Map[types.UID, *appsv1.ControllerRevision]
	report    *reporter // nil: there are no Settings
	// last are the last states of pods that are gone and that VMIs ran in. It is lost with the
	// process: then virt-handler reports the end, and what it cannot know is not said.
	last expiring.Map[types.UID, *corev1.Pod]
	// vanished are pods that were removed while their launchers ran. It is lost with the
	// process.
	vanished expiring.Map[types.UID, vanished]
	// ended are pods whose guests are known to have ended, by the status of their VMIs.
	ended expiring.Map[types.UID, struct{}]
	// silences are what is known of pods that wait and do not say why. It is lost with the
	// process, and is found anew then.
	silences expiring.Map[types.UID, instance.Silence]
	// eventReads limits the reads of such pods' events.
	eventReads *budget
	// observer has the series that serving serves, both nil without metrics.
	observer *observer
	serving  *serving
}

// New makes a Controller. It sends nothing and starts no goroutine until it runs, so one that
// is not needed is dropped. The error names each field of Config that is to be set.
func New(c Config) (*Controller, error) {
	if err := reconcile.Missing("controller.Config", map[string]bool{
		"Client": c.Client == nil, "Kube": c.Kube == nil, "Launcher.Image": c.Launcher.Image == "",
		"Home, which Settings needs": c.Settings != nil && c.Home == "",
	}); err != nil {
		return nil, err
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Workers == 0 {
		c.Workers = 32
	}
	c.Version = cmp.Or(c.Version, version.Of().Version)
	k := &Controller{cfg: c, log: c.Logger, kinds: map[string]looper{}, eventReads: newBudget(readsPerSecond, readsAtOnce, readWait),
		keeper: keeper{kinds: c.Launcher.VolumeKinds}, vanished: expiring.Map[types.UID, vanished]{Most: mostVanished}}
	if c.Metrics != nil {
		queues := metrics.NewQueues()
		k.queues, k.collectors = queues, []prometheus.Collector{queues, metrics.Unreadable(vmi.VirtualMachineInstances.Plural, k.Unreadable)}
	}
	var err error
	if k.events, err = reconcile.NewEvents(reconcile.EventsConfig{
		Client: c.Kube.CoreV1(), Component: component, Logger: c.Logger, Now: c.Now,
	}); err != nil {
		return nil, err
	}
	if c.Metrics != nil {
		k.collectors = append(k.collectors, metrics.EventsDropped(k.events.Dropped))
	}
	if k.caches, err = newCaches(c, &k.keeper); err != nil {
		return nil, err
	}
	k.dataVolumes = newDataVolumes(c)
	k.pooled = &pooled{client: c.Client, made: &k.madeVMs, deleted: &k.deleted, now: c.Now}
	if err := k.addInstances(); err != nil {
		return nil, err
	}
	for _, kind := range append(Kinds(), c.Kinds...) {
		if err := kind.add(k); err != nil {
			return nil, err
		}
	}
	for _, join := range k.joins {
		if err := join(); err != nil {
			return nil, err
		}
	}
	if k.sweeper, err = newSweeper(k); err != nil {
		return nil, err
	}
	if k.updater, err = newUpdater(k); err != nil {
		return nil, err
	}
	if c.Metrics != nil {
		if k.observer, err = newObserver(k); err != nil {
			return nil, err
		}
		k.serving = &serving{}
		k.collectors = append(k.collectors, k.serving)
	}
	if c.Settings != nil {
		if k.report, err = newReporter(c, k.events, k.queues, k.updater.outdated.Load); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// QueueAll queues every object: what could not be done may be possible now.
func (c *Controller) QueueAll() {
	for _, k := range c.kinds {
		k.queueAll()
	}
	c.sweeper.queueAll()
	c.updater.queueAll()
}

// suspended reports whether KubeVirt itself is installed, so that nothing is to
// be done.
func (c *Controller) suspended() bool {
	return c.cfg.Settings != nil && c.cfg.Settings.OtherInstallation() != ""
}

// Ready says why the Controller does not do its work, if it does not: the
// configuration is not known yet, or KubeVirt itself is installed. Starting it
// again would not help.
func (c *Controller) Ready() error {
	if c.cfg.Settings == nil {
		return nil
	}
	return c.cfg.Settings.Ready()
}

// Unreadable is how many of the VMIs that the Controller knows of cannot be decoded.
func (c *Controller) Unreadable() int { return len(c.caches.instances.Lister().Unreadable()) }

// Run works until ctx ends and everything that was begun is done, and leaves no goroutine. It
// is called once: a second call is an error, and who leads again makes another Controller.
func (c *Controller) Run(ctx context.Context) error {
	if err := c.once.Begin("controller"); err != nil {
		return err
	}
	unregister, err := metrics.Register(c.cfg.Metrics, c.collectors...)
	if err != nil {
		return err
	}
	defer unregister()
	ctx, cancel := context.WithCancel(reconcile.WithClientLog(ctx, c.log))
	defer c.events.Begin(ctx)()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer c.migrations.calls.wait()
	defer cancel()
	if c.cfg.Settings != nil {
		defer c.cfg.Settings.OnChange(c.QueueAll)()
	}
	wg.Go(func() { c.caches.Run(ctx) })
	wg.Go(func() { c.dataVolumes.run(ctx) })
	if c.report != nil {
		wg.Go(func() { c.report.run(ctx) })
		if !c.cfg.Settings.Wait(ctx) {
			return nil // ctx has ended
		}
	}
	if !c.caches.Wait(ctx) {
		return nil // ctx has ended
	}
	if c.serving != nil {
		c.serving.Store(c.observer)
		defer c.serving.Store(nil)
	}
	c.log.Info("reconcile", "instances", len(c.caches.instances.GetIndexer().ListKeys()))
	var loops sync.WaitGroup
	for _, k := range c.kinds {
		loops.Go(func() { k.run(ctx) })
	}
	loops.Go(func() { c.sweeper.loop.Run(ctx) })
	c.updater.queueAll()
	loops.Go(func() { c.updater.loop.Run(ctx) })
	loops.Wait()
	return nil
}

// rendering is how pods are rendered now.
func (c *Controller) rendering() pod.Config {
	r := pod.Config{Launcher: c.cfg.Launcher, Cluster: c.cfg.Cluster}
	if c.cfg.Settings != nil {
		r.Cluster = c.cfg.Settings.Config()
	}
	return r
}

// Cached returns the launcher pod of this name and the VMI that controls it, as
// they were a moment ago. Nil: there is none, or the Controller does not know of
// it, as while it does not run. Of the pod, and of a VMI that was handed over, only what
// the Controller reads is there. Both are shared: copy them before changing them.
func (c *Controller) Cached(namespace, name string) (*corev1.Pod, *vmi.VirtualMachineInstance) {
	p := c.caches.pods.Lister().Key(reconcile.KeyIn(namespace, name))
	if p == nil {
		return nil, nil
	}
	for _, key := range ownerOf(p) {
		return p, c.instances.latest(key)
	}
	return p, nil
}
