package controller

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/podvisor/podvisor/internal/reconcile"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/informer"
)

// decide makes the plan for an object on top of what was observed for it.
// Refusal is why the pod of the last plan was not accepted, or nil.
type decide[T any] func(o T, refusal *vmi.Finding) scheduler.Plan

// registration is what makes a kind one of those that the Controller reconciles.
type registration[T client.Object, L runtime.Object] struct {
	// definition is the kind.
	definition vmi.DefinitionOf[T, L]
	// finalizer holds a deleted object until its guests are off.
	finalizer string
	// name names the loop, as KubeVirt names its work queues.
	name string
	// indexers find the objects in the cache by a value. Nil: only by their namespace.
	indexers cache.Indexers
	// observe reads what a decision about the object depends on.
	observe func(ctx context.Context, o T) (decide[T], error)
	// describe is what the log has of a status that is written: keys and values.
	describe func(o T) []any
	// meanwhile says that an object whose VMIs are refused is decided on also while it
	// waits for its turn to create them.
	meanwhile bool
}

// kind is the loop of one kind.
type kind[T client.Object, L runtime.Object] struct {
	registration[T, L]
	executor[T, L]
	// cached are the objects, among the Controller's caches.
	cached informer.Informer[T]
	loop   *reconcile.Loop
	// turns are those of objects whose pods are refused.
	turns *turns
	// suspended reports whether nothing is to be done.
	suspended func() bool
}

// looper is a kind, whichever it is.
type looper interface {
	// queueAll queues every object.
	queueAll()
	// run reconciles until ctx ends.
	run(ctx context.Context)
}

// register makes the kind one of the Controller's, caches its objects, and queues them
// when they change. When else they are to be queued, the caller says.
func register[T client.Object, L runtime.Object](c *Controller, r registration[T, L]) (*kind[T, L], error) {
	k := &kind[T, L]{
		registration: r,
		executor: executor[T, L]{
			kube: c.cfg.Kube, events: c.events, client: c.cfg.Client, writer: reconcile.NewWriter(c.cfg.Client, r.definition), log: c.log.With("loop", r.name), made: &c.made, gates: &c.gates, now: c.cfg.Now, describe: r.describe,
			finalizer: r.finalizer, kind: r.definition, owned: c.owned,
		},
		cached:    informer.New(client.Of(c.cfg.Client, r.definition, c.cfg.Namespace), informer.Selection{}),
		suspended: c.suspended,
	}
	if err := reconcile.Cache(&c.caches.Caches, k.cached, reconcile.Cached[T]{Indexers: r.indexers}); err != nil {
		return nil, err
	}
	k.loop = reconcile.New(reconcile.Config{Name: r.name, Do: k.reconcile, Workers: c.cfg.Workers, Metrics: c.cfg.Metrics, Logger: c.log})
	k.turns = newTurns(k.loop.Add, c.cfg.Now)
	c.kinds = append(c.kinds, k)
	return k, reconcile.Watch(k.cached, k.loop, reconcile.Itself[T], nil)
}

func (k *kind[T, L]) run(ctx context.Context) {
	defer k.turns.stop()
	k.loop.Run(ctx)
}

func (k *kind[T, L]) queueAll() {
	for _, key := range k.cached.GetIndexer().ListKeys() {
		k.loop.Add(key)
	}
}

// reconcile observes, decides and acts. A pod that is refused is observed as
// such, so that the reason is written before the next try, which is made when the
// object has its turn.
func (k *kind[T, L]) reconcile(ctx context.Context, key string) (time.Duration, error) {
	o := k.latest(key)
	var none T
	if any(o) == any(none) || k.suspended() {
		k.turns.forget(key)
		return 0, nil
	}
	waits := k.turns.waiting(key) && o.GetDeletionTimestamp() == nil
	if waits && !k.meanwhile {
		return 0, nil
	}
	next, err := k.observe(ctx, o)
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
	var refused *refusal
	switch {
	case errors.As(err, &refused) && refused.err == nil:
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

// creates reports whether the plan creates a pod or a VMI.
func creates(p scheduler.Plan) bool {
	return slices.ContainsFunc(p.Actions, func(a scheduler.Action) bool {
		_, pod := a.(scheduler.CreatePod)
		_, instance := a.(scheduler.CreateInstance)
		return pod || instance
	})
}

// latest is the object with this key, by the cache and own writes. Nil: there is
// none.
func (k *kind[T, L]) latest(key string) T {
	return k.writer.Latest(key, k.cached.Key(key))
}
