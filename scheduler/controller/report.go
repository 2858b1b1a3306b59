package controller

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/podvisor/podvisor/internal/reconcile"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/config"
	"github.com/podvisor/podvisor/vmi/config/live"
)

// reasonForeign is the reason of the event that says that KubeVirt itself is
// installed.
const reasonForeign = "KubeVirtInstalled"

// reporter writes the status of every KubeVirt.
type reporter struct {
	cfg      Config
	log      *slog.Logger
	settings *live.Watcher
	handlers cache.SharedIndexInformer // the DaemonSets of virt-handler
	events   *reconcile.Events
	writer   *reconcile.Writer[*vmi.KubeVirt, *vmi.KubeVirtList]
	loop     *reconcile.Loop
	// outdated is how many VMIs have an outdated launcher. Negative: that is not known.
	outdated func() int64

	mu      sync.Mutex
	foreign string // what was last reported of an installation of KubeVirt
}

func newReporter(c Config, events *reconcile.Events, queues workqueue.MetricsProvider, outdated func() int64) (*reporter, error) {
	r := &reporter{cfg: c, outdated: outdated, log: c.Logger, settings: c.Settings, events: events, writer: reconcile.NewWriter(c.Client, vmi.KubeVirts)}
	r.handlers = appsinformers.NewFilteredDaemonSetInformer(c.Kube, c.Home, 0, cache.Indexers{},
		func(o *metav1.ListOptions) { o.LabelSelector = vmi.AppLabel + "=" + handlerApp })
	// One worker: there is one status to write.
	r.loop = reconcile.New(reconcile.Config{Name: "virt-controller-kubevirt", Do: r.reconcile, Workers: 1, Metrics: queues, Logger: c.Logger})
	_, err := r.handlers.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { r.queue() }, UpdateFunc: func(any, any) { r.queue() }, DeleteFunc: func(any) { r.queue() },
	})
	return r, err
}

// queue queues all KubeVirts.
func (r *reporter) queue() { r.loop.Add("all") }

// run reports until ctx ends.
func (r *reporter) run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	defer r.settings.OnChange(r.queue)()
	wg.Go(func() { r.handlers.RunWithContext(ctx) })
	if !r.settings.Wait(ctx) || !cache.WaitForCacheSync(ctx.Done(), r.handlers.HasSynced) {
		return
	}
	r.queue()
	r.loop.Run(ctx)
}

// reconcile writes what has changed. Where KubeVirt itself is installed, the
// status is its operator's.
func (r *reporter) reconcile(ctx context.Context, _ string) (time.Duration, error) {
	why := r.settings.OtherInstallation()
	r.reportForeign(ctx, why)
	if why != "" {
		return 0, nil
	}
	s, c := r.settings.State(), r.components()
	if n := r.outdated(); n >= 0 {
		c.Outdated = new(int(n))
	}
	for _, k := range r.settings.KubeVirts() {
		status := config.Report(s, k, c, metav1.NewTime(r.cfg.Now()))
		if equality.Semantic.DeepEqual(status, k.Status) {
			continue
		}
		changed := k.DeepCopy()
		changed.Status = status
		if _, err := r.writer.Status(ctx, k, changed); err != nil {
			return 0, fmt.Errorf("report on the configuration: %w", err)
		}
		r.warn(ctx, k, &status)
	}
	return 0, nil
}

// warn emits an event when the configuration, or a feature gate of it, cannot be used any
// more.
func (r *reporter) warn(ctx context.Context, k *vmi.KubeVirt, s *vmi.KubeVirtStatus) {
	for _, t := range []vmi.ConditionType{vmi.ConditionDegraded, vmi.ConditionGatesWithoutEffect} {
		was, is := k.Status.Condition(t), s.Condition(t)
		if is == nil || is.Status != corev1.ConditionTrue || was != nil && was.Status == is.Status && was.Reason == is.Reason && was.Message == is.Message {
			continue
		}
		r.events.Emit(ctx, k, reconcile.Event{Warning: true, Finding: vmi.Finding{Reason: is.Reason, Message: is.Message}})
	}
}

// reportForeign emits an event on every KubeVirt, once, when KubeVirt itself is
// installed.
func (r *reporter) reportForeign(ctx context.Context, why string) {
	r.mu.Lock()
	known := r.foreign == why
	r.foreign = why
	r.mu.Unlock()
	if known || why == "" {
		return
	}
	for _, k := range r.settings.KubeVirts() {
		r.events.Emit(ctx, k, reconcile.Event{Warning: true, Finding: vmi.Finding{Reason: reasonForeign, Message: why}})
	}
}

// components is how far the installation of virt-handler is.
func (r *reporter) components() config.Components {
	c := config.Components{Version: r.cfg.Version}
	list := r.handlers.GetStore().List()
	if len(list) == 0 {
		c.Waiting = "virt-handler is not installed."
		return c
	}
	for _, o := range list {
		d := o.(*appsv1.DaemonSet)
		s := d.Status
		if s.ObservedGeneration != d.Generation || s.UpdatedNumberScheduled < s.DesiredNumberScheduled {
			c.Updating = "virt-handler is being replaced."
		}
		if s.ObservedGeneration == 0 || s.NumberReady < s.DesiredNumberScheduled {
			c.Waiting = "virt-handler is not ready on all of its nodes."
		}
	}
	return c
}
