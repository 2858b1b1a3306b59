package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/podvisor/podvisor/internal/expiring"
	"github.com/podvisor/podvisor/internal/reconcile"
	"github.com/podvisor/podvisor/internal/scheduler/launched"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/scheduler/migration"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
)

// indexMoves finds migrations by the key of the VMI that they name.
const indexMoves = "moves"

// migrationKind is the entry of migrations, and its loop.
type (
	migrationKind = KindOf[*vmi.VirtualMachineInstanceMigration, *vmi.VirtualMachineInstanceMigrationList]
	migrationLoop = loopOf[*vmi.VirtualMachineInstanceMigration, *vmi.VirtualMachineInstanceMigrationList]
)

// moves are VirtualMachineInstanceMigrations. They are queued when their VMI, one of its pods
// or another migration of it changes, when a handler has answered, and when another migration
// leaves a place in the queue.
//
// +podvisor:entry
var moves = migrationKind{
	Definition: vmi.VirtualMachineInstanceMigrations,
	Name:       "virt-controller-migration", Observe: observeMigration, Meanwhile: true,
	Describe: func(m *vmi.VirtualMachineInstanceMigration) []any { return []any{"phase", m.Status.Phase} },
	Indexers: cache.Indexers{indexMoves: index(func(m *vmi.VirtualMachineInstanceMigration) []string {
		return reconcile.KeysIn(m.Namespace, m.Spec.VMIName)
	})},
	also: watchForMigrations,
}

// migrations is what the process knows of migrations. It is lost with the process, and is
// found anew then.
type migrations struct {
	loop  *migrationLoop
	calls *migrationCalls
	// made are the targets that were created and that the cache may not have.
	made made
	// handedOver are since when VMIs are known to be handed over, and warned are the migrations
	// of whose target a warning was written, by the UIDs of the migrations.
	handedOver expiring.Map[types.UID, time.Time]
	warned     expiring.Map[types.UID, struct{}]
	// granted are the migrations that have a place, and that the cache may have without a
	// target.
	granted expiring.Map[types.UID, struct{}]
	// queue is held while places are given.
	queue sync.Mutex
}

// Times that what is known of a migration is kept.
const (
	grantedFor = time.Minute
	warnedFor  = 10 * time.Minute
)

func watchForMigrations(c *Controller, l *migrationLoop) error {
	m := &c.migrations
	m.loop, l.made = l, &m.made
	m.calls = newMigrationCalls(c.cfg.Handlers, l.loop.Add, c.cfg.Now)
	l.calls = m.calls
	return errors.Join(
		reconcile.Watch(l.cached, l.loop, func(o *vmi.VirtualMachineInstanceMigration) []string {
			gone := l.cached.Lister().Key(reconcile.Key(o)) == nil
			if gone {
				m.forget(o)
			}
			if !gone && !o.Status.Phase.Final() {
				return nil
			}
			return append(m.of(reconcile.KeyIn(o.Namespace, o.Spec.VMIName)), c.nextMigrations()...)
		}, func(old, now *vmi.VirtualMachineInstanceMigration) bool { return old.Status.Phase != now.Status.Phase }),
		reconcile.Watch(l.cached, c.instances.loop, evacuatedBy, func(old, now *vmi.VirtualMachineInstanceMigration) bool {
			return old.Status.Phase != now.Status.Phase
		}),
		reconcile.Watch(c.caches.instances, l.loop, c.seen(func(v *vmi.VirtualMachineInstance) []string { return m.of(reconcile.Key(v)) }), nil),
		reconcile.Watch(c.caches.claims, l.loop, func(p *corev1.PersistentVolumeClaim) []string {
			if name := p.Labels[vmi.MigrationNameLabel]; name != "" {
				return reconcile.KeysIn(p.Namespace, name)
			}
			return nil
		}, nil),
		reconcile.Watch(c.caches.pods, l.loop, func(p *corev1.Pod) []string {
			var keys []string
			for _, key := range madeFor(p) {
				keys = append(keys, m.of(key)...)
			}
			return keys
		}, podChanged))
}

// of are the keys of the migrations of the VMI with this key.
func (m *migrations) of(key string) []string {
	keys, _ := m.loop.cached.GetIndexer().IndexKeys(indexMoves, key) // the index exists
	return keys
}

// forget drops what is known of a migration that is gone.
func (m *migrations) forget(o *vmi.VirtualMachineInstanceMigration) {
	m.handedOver.Delete(o.UID)
	m.warned.Delete(o.UID)
	m.granted.Delete(o.UID)
	m.calls.forget(o.UID)
}

// observeMigration reads what a decision about the migration depends on. Before a target is
// created the API server says what the VMI is: the cache has not all of it.
func observeMigration(ctx context.Context, c *Controller, m *vmi.VirtualMachineInstanceMigration) (Decide[*vmi.VirtualMachineInstanceMigration], error) {
	o, err := c.gather(m)
	if err != nil {
		return nil, err
	}
	if err := c.findTarget(ctx, &o); err != nil {
		return nil, err
	}
	o.Config = c.rendering()
	if o.VMI != nil && o.Target != nil && o.HandedOver.IsZero() && !m.Status.Phase.Final() {
		if o.Settings, err = c.migrationSettings(ctx, o.VMI); err != nil {
			return nil, err
		}
	}
	if migration.Eligible(o) && c.takesPlace(m) {
		if err := c.whole(ctx, &o); err != nil {
			return nil, err
		}
		o.Turn = true
	}
	return func(m *vmi.VirtualMachineInstanceMigration, refusal *vmi.Finding) scheduler.Plan {
		now := o
		now.Migration, now.Refusal = m, refusal
		if refusal != nil {
			c.migrations.granted.Delete(m.UID)
		}
		p := migration.Decide(now)
		if slices.ContainsFunc(p.Actions, warnsOfTarget) {
			c.migrations.warned.Put(m.UID, struct{}{}, o.Now, warnedFor)
		}
		return p
	}, nil
}

func warnsOfTarget(a scheduler.Action) bool {
	if e, ok := a.(scheduler.EmitFor); ok {
		a = e.Emit
	}
	e, ok := a.(scheduler.Emit)
	return ok && e.Warning && (e.Reason == migration.TargetUnschedulable || e.Reason == migration.FailedCreate)
}

// gather is what the caches have of the migration.
func (c *Controller) gather(m *vmi.VirtualMachineInstanceMigration) (migration.Observed, error) {
	key, now := reconcile.KeyIn(m.Namespace, m.Spec.VMIName), c.cfg.Now()
	o := migration.Observed{Migration: m, Calls: c.migrations.calls.of(m.UID), Now: now}
	_, o.Warned = c.migrations.warned.Get(m.UID, now)
	for _, other := range c.migrations.of(key) {
		if l := c.migrations.loop.latest(other); l != nil && l.UID != m.UID {
			o.Others = append(o.Others, l)
		}
	}
	if o.Claim = c.caches.claims.Lister().Key(reconcile.KeyIn(m.Namespace, migrationClaim(m))); o.Claim != nil {
		o.Claim = c.claims.latest(o.Claim, now)
	}
	if o.VMI, _ = c.Instance(key); o.VMI == nil {
		return o, nil
	}
	var err error
	if o.Pods, err = c.cachedPods(o.VMI); err != nil {
		return o, err
	}
	name := pod.Metadata(o.VMI, pod.Target(m)).Name
	for _, p := range o.Pods {
		if p.Name == name && launched.Adoptable(p, o.VMI) {
			o.Target = p
		}
	}
	if s := o.VMI.Status.MigrationState; s != nil && s.MigrationUID == m.UID {
		o.HandedOver = c.migrations.handedOver.GetOrPut(m.UID, now, now, 0)
	}
	return o, nil
}

// migrationClaim is the name of the claim for the state of a VMI that is made for the migration.
func migrationClaim(m *vmi.VirtualMachineInstanceMigration) string {
	v := &vmi.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Name: m.Spec.VMIName}}
	return pod.StateClaim(v, pod.Config{Role: pod.Target(m)}).Name
}

// findTarget reads a target that was created and that the cache does not have, and whether
// its node runs anything.
func (c *Controller) findTarget(ctx context.Context, o *migration.Observed) error {
	m := o.Migration
	if o.VMI == nil || m.Status.Phase.Final() {
		return nil
	}
	last, made := c.migrations.made.Get(reconcile.Key(m), o.Now)
	if o.Target == nil && (made || m.Status.Phase != vmi.MigrationPhaseUnset && m.Status.Phase != vmi.MigrationPhasePending) {
		name := pod.Metadata(o.VMI, pod.Target(m)).Name
		live, err := read(ctx, "pod", name, c.cfg.Kube.CoreV1().Pods(m.Namespace).Get)
		if err != nil {
			return err
		}
		if live != nil && launched.Adoptable(live, o.VMI) {
			o.Target = deleting(live, &c.deleted, o.Now)
			o.Pods = append(o.Pods, o.Target)
		}
	}
	if o.VMI.Spec.Domain.KeepsState() && o.Claim == nil && (made || o.Target != nil) {
		var err error
		if o.Claim, err = read(ctx, "claim", migrationClaim(m), c.cfg.Kube.CoreV1().PersistentVolumeClaims(m.Namespace).Get); err != nil {
			return err
		}
	}
	if made {
		c.migrations.made.seen(reconcile.Key(m), last)
	}
	if model := o.ModelLabels(); model != nil {
		l, err := c.cfg.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: labels.SelectorFromSet(model).String(), Limit: 2})
		if err != nil {
			return fmt.Errorf("find nodes with the processor of VMI %s: %w", reconcile.Key(o.VMI), err)
		}
		o.NoModel = !slices.ContainsFunc(l.Items, func(n corev1.Node) bool { return n.Name != o.VMI.Status.NodeName })
	}
	node := ""
	if s := o.VMI.Status.MigrationState; o.Target != nil {
		node = o.Target.Spec.NodeName
	} else if s != nil && s.MigrationUID == m.UID { // the pod was removed, as those of a fenced node are
		node = s.TargetNode
	}
	if node != "" {
		n, err := c.node(ctx, node)
		if err != nil {
			return err
		}
		o.TargetFenced = n.Fenced()
	}
	return nil
}

// whole reads the VMI, and what its target is rendered by.
func (c *Controller) whole(ctx context.Context, o *migration.Observed) error {
	v, err := c.cfg.Client.VirtualMachineInstances(o.VMI.Namespace).Get(ctx, o.VMI.Name, metav1.GetOptions{})
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return fmt.Errorf("read VMI %s, which is to move: %w", reconcile.Key(o.VMI), err)
	case err != nil || v.UID != o.VMI.UID || v.DeletionTimestamp != nil:
		return apierrors.NewConflict(vmi.VirtualMachineInstances.Resource().GroupResource(), o.VMI.Name, errOldCache)
	}
	facts, err := Facts(ctx, c.cfg.Kube, c.cfg.Dynamic, v)
	if err != nil {
		return err
	}
	source, err := read(ctx, "pod", instance.ActivePodName(v), c.cfg.Kube.CoreV1().Pods(v.Namespace).Get)
	if err != nil {
		return err
	}
	n, err := read(ctx, "node", v.Status.NodeName, c.cfg.Kube.CoreV1().Nodes().Get)
	if err != nil {
		return err
	}
	facts.Move = pod.MoveOf(o.Migration, source, n)
	o.VMI, o.Config.Facts = v, facts
	return nil
}

// takesPlace says that the migration has a place in the queue, and gives it one if there is
// one for it.
func (c *Controller) takesPlace(m *vmi.VirtualMachineInstanceMigration) bool {
	c.migrations.queue.Lock()
	defer c.migrations.queue.Unlock()
	now := c.cfg.Now()
	if _, ok := c.migrations.granted.Get(m.UID, now); ok {
		return true
	}
	next, _ := c.places()
	if !slices.Contains(next, m.UID) {
		return false
	}
	c.migrations.granted.Put(m.UID, struct{}{}, now, grantedFor)
	return true
}

// nextMigrations are the keys of the migrations that wait and have a place now.
func (c *Controller) nextMigrations() []string {
	c.migrations.queue.Lock()
	defer c.migrations.queue.Unlock()
	next, keys := c.places()
	out := make([]string, 0, len(next))
	for _, uid := range next {
		out = append(out, keys[uid])
	}
	return out
}

// places are the migrations that wait and have a place, and the keys of all that wait.
func (c *Controller) places() ([]types.UID, map[types.UID]string) {
	all, keys := c.allPlaces()
	return migration.MayBegin(all, c.migrationLimits()), keys
}

// allPlaces are those of the migrations that have a target or that only the queue keeps from
// one, and their keys. The queue is locked meanwhile.
func (c *Controller) allPlaces() ([]migration.Place, map[types.UID]string) {
	var all []migration.Place
	keys, now := map[types.UID]string{}, c.cfg.Now()
	for _, key := range c.migrations.loop.cached.GetIndexer().ListKeys() {
		m := c.migrations.loop.latest(key)
		if m == nil || m.Status.Phase.Final() {
			continue
		}
		o, err := c.gather(m)
		if err != nil {
			continue // the index exists
		}
		p := migration.PlaceOf(m, o.VMI)
		_, granted := c.migrations.granted.Get(m.UID, now)
		p.Begun = p.Begun || granted || o.Target != nil
		if !p.Begun && !migration.Eligible(o) {
			continue
		}
		all, keys[m.UID] = append(all, p), key
	}
	return all, keys
}
