package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/podvisor/podvisor/internal/reconcile"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/informer"
)

// Decide makes the plan for an object on top of what was observed for it.
// Refusal is why the pod or the VMI of the last plan was not accepted, or nil.
type Decide[T any] func(o T, refusal *vmi.Finding) scheduler.Plan

// Kind is a kind that a Controller reconciles: a [KindOf].
type Kind interface {
	// add makes the kind one of the Controller's.
	add(c *Controller) error
}

// KindOf is the entry of a kind with the objects T: what its loop has of its own. An
// object is queued when it changes, when VMIs change of which Instances says so, and
// when the Recheck of its last plan is over. Definition, Name and Observe are required.
type KindOf[T vmi.Object, L runtime.Object] struct {
	// Definition is the kind.
	Definition vmi.DefinitionOf[T, L]
	// Name names the loop in the log and its work queue in metrics, as KubeVirt names
	// its own: virt-controller-vm.
	Name string
	// Indexers find the objects in the cache by a value. Nil: only by their namespace.
	Indexers cache.Indexers
	// Observe reads what a decision about the object depends on: VMIs from the
	// Controller, all else by clients of its own. It does not change the object. It is
	// called for several objects at the same time. After an error it is called again,
	// later each time.
	Observe func(ctx context.Context, c *Controller, o T) (Decide[T], error)
	// Instances are the keys (namespace/name) of the objects that are queued when the VMI
	// was created, changed or deleted. Objects are those of the kind. Nil: none.
	Instances func(v *vmi.VirtualMachineInstance, objects informer.Lister[T]) []string
	// Describe is what the log has of a status that is written: keys and values. Nil:
	// nothing.
	Describe func(o T) []any
	// Meanwhile says that an object whose VMIs are refused is decided on also while it
	// waits for its turn to create them.
	Meanwhile bool
	// keep returns what drops from an object in the cache what is not read. Nil: all is kept
	// but the managed fields.
	keep func(c *Controller) func(o T)
	// wholeStatus reports whether an object in the cache has all of its status, so that it may be
	// written as a whole. Nil: of none.
	wholeStatus func(o T) bool
	// whole returns what keep has packed, in a copy of the object. Nil: nothing is packed.
	whole func(o T) T
	// also queues objects when something else changes. It is called when all loops are there.
	// Nil: nothing does.
	also func(c *Controller, l *loopOf[T, L]) error
}

// loopOf is the loop of one kind.
type loopOf[T vmi.Object, L runtime.Object] struct {
	KindOf[T, L]
	executor[T, L]
	// cached are the objects, among the Controller's caches.
	cached informer.Informer[T]
	loop   *reconcile.Loop
	// turns are those of objects whose pods are refused.
	turns *turns
	// on is the Controller that has the loop.
	on *Controller
}

// looper is the loop of a kind, whichever it is.
type looper interface {
	// queueAll queues every object.
	queueAll()
	// run reconciles until ctx ends.
	run(ctx context.Context)
}

// add adds the loop of a kind that is not that of VMIs.
func (e KindOf[T, L]) add(c *Controller) error {
	k, err := newLoop(c, e)
	if err != nil {
		return err
	}
	if e.Instances != nil {
		err = reconcile.Watch(c.caches.instances, k.loop, c.seen(func(v *vmi.VirtualMachineInstance) []string {
			return e.Instances(v, k.cached.Lister())
		}), nil)
	}
	if e.also != nil {
		c.joins = append(c.joins, func() error { return e.also(c, k) })
	}
	return err
}

// newLoop adds the loop of the kind to the Controller, caches its objects, and queues them
// when they change. When else they are to be queued, the caller says.
func newLoop[T vmi.Object, L runtime.Object](c *Controller, e KindOf[T, L]) (*loopOf[T, L], error) {
	if err := reconcile.Missing(fmt.Sprintf("controller.KindOf %q (%s)", e.Name, e.Definition.Kind), map[string]bool{
		"Definition": e.Definition.New == nil, "Name": e.Name == "", "Observe": e.Observe == nil,
	}); err != nil {
		return nil, err
	}
	if _, twice := c.kinds[e.Name]; twice {
		return nil, fmt.Errorf("controller.KindOf %q (%s): set another Name, there is a loop %[1]s already", e.Name, e.Definition.GroupKind())
	}
	if e.Describe == nil {
		e.Describe = func(T) []any { return nil }
	}
	cached, err := informer.NewFiltered(client.Of(c.cfg.Client, e.Definition, c.cfg.Namespace), informer.Selection{})
	if err != nil {
		return nil, err
	}
	k := &loopOf[T, L]{
		KindOf: e,
		executor: executor[T, L]{
			kube: c.cfg.Kube, events: c.events, client: c.cfg.Client, writer: reconcile.NewWriter(c.cfg.Client, e.Definition), log: c.log.With("loop", e.Name),
			made: &c.made, rendered: &c.rendered, gates: &c.gates, claims: &c.claims, deleted: &c.deleted, now: c.cfg.Now, describe: e.Describe,
			kind: e.Definition, owned: c.owned, pooled: c.pooled, dataVolumes: c.dataVolumes,
		},
		cached: cached, on: c,
	}
	k.writer.Whole = e.wholeStatus
	kept := reconcile.Cached[T]{Indexers: e.Indexers}
	if e.keep != nil {
		kept.Keep = e.keep(c)
	}
	if err := reconcile.Cache(&c.caches.Caches, k.cached, kept); err != nil {
		return nil, err
	}
	k.loop = reconcile.New(reconcile.Config{Name: e.Name, Do: k.reconcile, Workers: c.cfg.Workers, Metrics: c.queues, Logger: c.log, LogKey: reconcile.LogKey(*new(T))})
	k.turns = newTurns(k.loop.Add, c.cfg.Now)
	c.kinds[e.Name] = k
	return k, reconcile.Watch(k.cached, k.loop, reconcile.Itself[T], nil)
}

func (k *loopOf[T, L]) run(ctx context.Context) {
	defer k.turns.stop()
	k.loop.Run(ctx)
}

func (k *loopOf[T, L]) queueAll() {
	for _, key := range k.cached.GetIndexer().ListKeys() {
		k.loop.Add(key)
	}
}

// reconcile observes, decides and acts. A pod that is refused is observed as
// such, so that the reason is written before the next try, which is made when the
// object has its turn.
func (k *loopOf[T, L]) reconcile(ctx context.Context, key string) (time.Duration, error) {
	o := k.latest(key)
	var none T
	if any(o) == any(none) || k.on.suspended() {
		k.turns.forget(key)
		return 0, nil
	}
	waits := k.turns.waiting(key) && o.GetDeletionTimestamp() == nil
	if waits && !k.Meanwhile {
		return 0, nil
	}
	next, err := k.Observe(ctx, k.on, o)
	if err != nil {
		return 0, err
	}
	if waits {
		plan := next(o, new(k.turns.last(key)))
		_, err := k.act(ctx, o, plan)
		return plan.Recheck, err
	}
	plan := next(o, nil)
	o, err = k.act(ctx, o, plan)
	var refused *Refusal
	switch {
	case errors.As(err, &refused) && refused.Err == nil:
		_, again := k.act(ctx, o, next(o, &refused.Finding))
		return 0, errors.Join(err, again)
	case refused != nil:
		f := k.turns.refused(key, refused.Finding)
		if _, err = k.act(ctx, o, next(o, &f)); err != nil {
			k.turns.forget(key) // the reason is to be written before the next turn
		}
		return 0, err
	case err == nil && creates(plan):
		k.turns.accepted(key)
	case err == nil:
		k.turns.forget(key)
	}
	return plan.Recheck, err
}

// creates reports whether the plan creates a pod, a VMI or a VM, or changes a VM.
func creates(p scheduler.Plan) bool {
	return slices.ContainsFunc(p.Actions, func(a scheduler.Action) bool {
		return is[scheduler.CreatePod](a) || is[scheduler.CreateInstance](a) || is[scheduler.CreateVM](a) || is[scheduler.ChangeVM](a)
	})
}

// latest is the object with this key, by the cache and own writes. Nil: there is
// none.
func (k *loopOf[T, L]) latest(key string) T {
	o := k.writer.Latest(key, k.cached.Lister().Key(key))
	var none T
	if k.whole == nil || any(o) == any(none) {
		return o
	}
	return k.whole(o)
}

// isCurrent asks the API server whether the object is as the cache has it. If it is not, the
// error is a conflict.
func isCurrent[T vmi.Object](ctx context.Context, d vmi.Definition, o T, get func(context.Context, string, metav1.GetOptions) (T, error)) error {
	live, err := get(ctx, o.GetName(), metav1.GetOptions{})
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return fmt.Errorf("read %s %s: %w", d.Kind, reconcile.Key(o), err)
	case err != nil || live.GetUID() != o.GetUID() || live.GetResourceVersion() != o.GetResourceVersion():
		return apierrors.NewConflict(d.Resource().GroupResource(), o.GetName(), errOldCache)
	}
	return nil
}

// errOldCache is why a decision by the cache is not carried out.
var errOldCache = errors.New("the cache has an earlier state of the object")
