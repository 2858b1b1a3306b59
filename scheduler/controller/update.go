package controller

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/internal/expiring"
	"github.com/podvisor/podvisor/internal/reconcile"
	"github.com/podvisor/podvisor/internal/scheduler/launched"
	"github.com/podvisor/podvisor/internal/scheduler/update"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/vmi"
)

// updater gives VMIs that run the launcher of this version, as the configuration of the
// cluster says, and counts those that have another one.
type updater struct {
	*Controller
	loop *reconcile.Loop
	// outdated is how many VMIs have another launcher. Negative: they were not counted.
	outdated atomic.Int64

	// What follows is of the one worker. It is lost with the process: then a batch of
	// evictions may come early, of which those that have not ended count.
	passed, batch time.Time
	tried         expiring.Map[types.UID, time.Time]
}

const (
	// updatePace is the time between two decisions about all outdated VMIs.
	updatePace = 5 * time.Second
	// triedFor is how long it is remembered that the eviction of a pod was asked for.
	triedFor = 24 * time.Hour
)

// newUpdater makes the updater of the controller. It decides again when an outdated VMI
// changes, and when a migration ends.
func newUpdater(c *Controller) (*updater, error) {
	u := &updater{Controller: c}
	u.outdated.Store(-1)
	u.loop = reconcile.New(reconcile.Config{Name: "virt-controller-workload-update", Do: u.reconcile, Workers: 1, Metrics: c.queues, Logger: c.log})
	return u, errors.Join(
		reconcile.Watch(c.caches.instances, u.loop, func(v *vmi.VirtualMachineInstance) []string {
			if !isOutdated(v) {
				return nil
			}
			return everything
		}, nil),
		reconcile.Watch(c.migrations.loop.cached, u.loop, func(m *vmi.VirtualMachineInstanceMigration) []string {
			if !m.Status.Phase.Final() {
				return nil
			}
			return everything
		}, func(old, now *vmi.VirtualMachineInstanceMigration) bool { return old.Status.Phase != now.Status.Phase }))
}

// everything is the key of the decision about all VMIs.
var everything = []string{"all"}

func (u *updater) queueAll() { u.loop.Add(everything[0]) }

func isOutdated(v *vmi.VirtualMachineInstance) bool {
	_, is := v.Labels[vmi.OutdatedLauncherLabel]
	return is
}

func (u *updater) reconcile(ctx context.Context, _ string) (time.Duration, error) {
	now := u.cfg.Now()
	if u.suspended() {
		return 0, nil
	}
	if left := u.passed.Add(updatePace).Sub(now); left > 0 && left <= updatePace {
		return left, nil
	}
	u.passed = now
	all := u.all()
	u.count(len(all))
	updates := u.rendering().Cluster.Updates
	if len(all) == 0 || !updates.Migrate && !updates.Evict {
		return 0, nil
	}
	if u.installing() {
		return updatePace, nil
	}
	o := update.Observed{Updates: updates, Limits: u.migrationLimits(), LastBatch: u.batch, Now: now}
	for _, v := range all {
		i, err := u.gatherOutdated(v)
		if err != nil {
			return 0, err
		}
		// The label may not be taken away yet from one that has just moved.
		if is, known := launched.Outdated(v, i.Active, u.rendering().ImageOf(v)); is || !known {
			o.Instances = append(o.Instances, i)
		}
	}
	u.migrations.queue.Lock()
	o.Places, _ = u.allPlaces()
	u.migrations.queue.Unlock()
	p := update.Decide(o)
	return max(p.Recheck, 0), u.do(ctx, p, now)
}

// do does the steps. One that does not succeed keeps none from the others.
func (u *updater) do(ctx context.Context, p update.Plan, now time.Time) error {
	var errs []error
	for _, s := range p.Steps {
		if e, ok := s.Action.(scheduler.EvictPod); ok {
			u.batch = now
			u.tried.Put(e.UID, now, now, triedFor)
		}
		_, err := u.instances.act(ctx, s.VMI, scheduler.Plan{Actions: []scheduler.Action{s.Action}})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// all are the VMIs with an outdated launcher.
func (u *updater) all() []*vmi.VirtualMachineInstance {
	cached, _ := u.caches.instances.Lister().List(labels.Everything()) // it never fails
	var out []*vmi.VirtualMachineInstance
	for _, v := range cached {
		if v = u.instances.latest(reconcile.Key(v)); v != nil && isOutdated(v) && !v.Status.Phase.Final() {
			out = append(out, v)
		}
	}
	return out
}

// count reports how many VMIs are outdated.
func (u *updater) count(n int) {
	if u.outdated.Swap(int64(n)) != int64(n) && u.report != nil {
		u.report.queue()
	}
}

// installing says that components are being replaced, or are not ready: virt-handler moves
// the guests.
func (u *updater) installing() bool {
	if u.report == nil {
		return false
	}
	c := u.report.components()
	return c.Waiting != "" || c.Updating != ""
}

// gatherOutdated is what the caches have of the VMI.
func (u *updater) gatherOutdated(v *vmi.VirtualMachineInstance) (update.Instance, error) {
	pods, err := u.cachedPods(v)
	if err != nil {
		return update.Instance{}, err
	}
	i := update.Instance{VMI: v, Pods: pods, Migrations: u.migrationsOf(v), Active: instance.PodsByRole(v, pods).Active}
	if i.Active != nil {
		i.Tried, _ = u.tried.Get(i.Active.UID, u.cfg.Now())
	}
	return i, nil
}

// cachedPods are the pods that were made for the VMI.
func (c *Controller) cachedPods(v *vmi.VirtualMachineInstance) ([]*corev1.Pod, error) {
	found, err := c.caches.pods.GetIndexer().ByIndex(indexInstance, reconcile.Key(v))
	if err != nil {
		return nil, err
	}
	var pods []*corev1.Pod
	for _, f := range found {
		if p := deleting(f.(*corev1.Pod), &c.deleted, c.cfg.Now()); launched.MadeFor(p, v) {
			pods = append(pods, p)
		}
	}
	return pods, nil
}

// migrationsOf are the migrations of the VMI.
func (c *Controller) migrationsOf(v *vmi.VirtualMachineInstance) []*vmi.VirtualMachineInstanceMigration {
	var all []*vmi.VirtualMachineInstanceMigration
	for _, key := range c.migrations.of(reconcile.Key(v)) {
		if m := c.migrations.loop.latest(key); m != nil {
			all = append(all, m)
		}
	}
	return all
}
