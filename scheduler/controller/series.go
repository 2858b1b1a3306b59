package controller

import (
	"maps"
	"slices"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	served "github.com/podvisor/podvisor/internal/metrics"
	"github.com/podvisor/podvisor/internal/reconcile"
	"github.com/podvisor/podvisor/internal/scheduler/launched"
	"github.com/podvisor/podvisor/internal/scheduler/metrics"
	"github.com/podvisor/podvisor/internal/series"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/instancetype"
)

// observer serves the series of VMs, VMIs and migrations, by the caches alone. It is there
// while the Controller runs, so only the leader has them.
type observer struct {
	*Controller
	vms        *loopOf[*vmi.VirtualMachine, *vmi.VirtualMachineList]
	histograms map[*series.Info]*prometheus.HistogramVec
}

// newObserver makes the observer of the controller, whose kinds are added.
func newObserver(c *Controller) (*observer, error) {
	o := &observer{Controller: c, vms: c.kinds[vms.Name].(*loopOf[*vmi.VirtualMachine, *vmi.VirtualMachineList]), histograms: map[*series.Info]*prometheus.HistogramVec{}}
	for _, h := range metrics.Histograms() {
		o.histograms[h] = served.Histogram(*h, metrics.Buckets)
	}
	if err := onChange(o, c.caches.instances, metrics.Phases); err != nil {
		return nil, err
	}
	return o, onChange(o, c.migrations.loop.cached, metrics.Moved)
}

// onChange adds the values of each change to the histograms.
func onChange[T any](o *observer, i cache.SharedIndexInformer, values func(was, now T) []metrics.Value) error {
	_, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(was, now any) {
		for _, v := range values(was.(T), now.(T)) {
			o.histograms[v.Histogram].WithLabelValues(v.Labels...).Observe(v.Seconds)
		}
	}})
	return err
}

// serving is the collector of an observer, from when the caches have all objects until the
// Controller ends. A registry never drops a collector that describes no series, so this one
// holds nothing then.
type serving struct{ atomic.Pointer[observer] }

// Describe implements prometheus.Collector. Series have the labels of objects, so they are
// not known before.
func (s *serving) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (s *serving) Collect(out chan<- prometheus.Metric) {
	if o := s.Load(); o != nil && !o.suspended() {
		o.collect(out)
	}
}

// collect sends the series. The time that it takes grows with the number of objects.
func (o *observer) collect(out chan<- prometheus.Metric) {
	to := served.NewSender(out)
	send := func(all []series.Series) {
		for _, s := range all {
			if err := to.Send(s); err != nil {
				o.log.Warn("a series is left out", "metric", s.Name, "err", err)
			}
		}
	}
	all, _ := o.vms.cached.Lister().List(labels.Everything()) // it never fails
	for _, v := range all {
		send(o.observeVM(v).Series())
	}
	instances, _ := o.caches.instances.Lister().List(labels.Everything())
	eviction := o.rendering().Cluster.Defaults.EvictionStrategy
	for _, v := range instances {
		send(o.observeInstance(v, eviction).Series())
	}
	moves, _ := o.migrations.loop.cached.Lister().List(labels.Everything())
	send(metrics.Fleet{Migrations: moves, Emulation: o.rendering().Emulation(), Outdated: o.updater.outdated.Load()}.Series())
	for _, h := range o.histograms {
		h.Collect(out)
	}
}

func (o *observer) observeVM(v *vmi.VirtualMachine) metrics.VM {
	v = wholeVM(v)
	out := metrics.VM{VM: v, Claim: func(name string) *corev1.PersistentVolumeClaim {
		return o.caches.claims.Lister().Key(reconcile.KeyIn(v.Namespace, name))
	}}
	if v.Spec.Instancetype == nil && v.Spec.Preference == nil {
		return out
	}
	found := o.found(v.Namespace, instancetype.References(v))
	out.Names = namesOf(found)
	t, p := instancetype.SpecsOf(found)
	if sized, conflicts := instancetype.Expand(v, t, p, o.rendering().Cluster.Defaults); len(conflicts) == 0 {
		out.Sized = sized.Spec.Template
	}
	return out
}

func (o *observer) observeInstance(v *vmi.VirtualMachineInstance, eviction vmi.EvictionStrategy) metrics.Instance {
	out := metrics.Instance{VMI: v, Eviction: eviction}
	var refs []instancetype.Reference
	for annotation, r := range namedBy {
		if name := v.Annotations[annotation]; name != "" {
			r.Name = name
			refs = append(refs, r)
		}
	}
	out.Names = namesOf(o.found(v.Namespace, refs))
	pods, _ := o.caches.pods.GetIndexer().ByIndex(indexCreator, string(v.UID)) // the index exists
	for _, p := range pods {
		if p := p.(*corev1.Pod); launched.Creator(p) == v.UID && p.Spec.NodeName == v.Status.NodeName && launched.Role(p) != vmi.RoleAttachment &&
			(out.Pod == nil || p.Status.Phase == corev1.PodRunning) {
			out.Pod = p
		}
	}
	if m := v.Status.MigrationState; m != nil {
		for _, key := range o.migrations.of(reconcile.Key(v)) {
			if move := o.migrations.loop.cached.Lister().Key(key); move != nil && move.UID == m.MigrationUID {
				out.Migration = move.Name
			}
		}
	}
	return out
}

// namedBy are the references that the annotations of a VMI make, without their names.
var namedBy = func() map[string]instancetype.Reference {
	out := map[string]instancetype.Reference{}
	for _, r := range []instancetype.Reference{
		{Part: instancetype.Instancetype, Kind: instancetype.VirtualMachineInstancetypes.Kind},
		{Part: instancetype.Instancetype, Kind: instancetype.VirtualMachineClusterInstancetypes.Kind},
		{Part: instancetype.Preference, Kind: instancetype.VirtualMachinePreferences.Kind},
		{Part: instancetype.Preference, Kind: instancetype.VirtualMachineClusterPreferences.Kind},
	} {
		out[r.Annotation()] = r
	}
	return out
}()

// observedAnnotations are the annotations of VMIs that series are made of.
var observedAnnotations = slices.Concat([]string{metrics.OSAnnotation, metrics.WorkloadAnnotation, metrics.FlavorAnnotation}, slices.Collect(maps.Keys(namedBy)))

// found are the objects that the caches have of what is named.
func (o *observer) found(namespace string, refs []instancetype.Reference) []instancetype.Found {
	var out []instancetype.Found
	for _, r := range refs {
		f := instancetype.Found{Reference: r}
		d, _ := r.Definition()
		for _, s := range o.caches.sizes {
			if s.kind == d.Kind {
				f.Object = s.of(sizeKey(d, namespace, r.Name))
			}
		}
		out = append(out, f)
	}
	return out
}

func namesOf(all []instancetype.Found) (n metrics.Names) {
	for _, f := range all {
		vendor := ""
		if f.Object != nil {
			vendor = f.Object.GetLabels()[metrics.VendorLabel]
		}
		if name := metrics.Vendored(f.Name, vendor); f.Part == instancetype.Preference {
			n.Preference = name
		} else {
			n.Instancetype = name
		}
	}
	return n
}
