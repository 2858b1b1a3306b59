// Package reconcile is the one work queue loop of all controllers: it takes a
// key, does what is to be done for it, and comes back when it is told to.
//
// An error is tried again with growing delays, except one that wraps
// vmi.ErrInvalid: there the wish is wrong, and only a change of the object,
// which queues the key anew, helps. A conflict or a vanished object is no error
// worth a line in the log: the cache was behind, and the key comes back with
// the next event.
package reconcile

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"

	"github.com/podvisor/podvisor/vmi"
)

// Func does what is to be done for one key. It is called again after the
// returned time, if that is not zero.
type Func func(ctx context.Context, key string) (after time.Duration, err error)

// Loop calls a Func for queued keys. A key is never handled twice at the same
// time.
type Loop struct {
	name    string
	do      Func
	workers int
	log     *slog.Logger
	queue   workqueue.TypedRateLimitingInterface[string]
}

// Config is the configuration of a Loop.
type Config struct {
	// Name names the loop in the log. Required.
	Name string
	// Do is called for each key. Required.
	Do Func
	// Workers is how many keys are handled at the same time. 0: 4.
	Workers int
	// Logger takes a line for each failure. Nil: nothing is logged.
	Logger *slog.Logger
}

// Delays between two tries of a key that fails.
const (
	firstDelay = 20 * time.Millisecond
	lastDelay  = 30 * time.Second
)

// New makes a Loop. Keys may be added at once; they are handled by Run.
func New(c Config) *Loop {
	if c.Workers == 0 {
		c.Workers = 4
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Loop{
		name: c.Name, do: c.Do, workers: c.Workers, log: c.Logger,
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstDelay, lastDelay),
			workqueue.TypedRateLimitingQueueConfig[string]{Name: c.Name}),
	}
}

// Add queues a key. A key that waits already is not queued twice.
func (l *Loop) Add(key string) { l.queue.Add(key) }

// Run handles keys until ctx ends and all workers have returned.
func (l *Loop) Run(ctx context.Context) {
	var wg sync.WaitGroup
	for range l.workers {
		wg.Go(func() {
			for l.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	l.queue.ShutDown()
	wg.Wait()
}

func (l *Loop) next(ctx context.Context) bool {
	key, stop := l.queue.Get()
	if stop {
		return false
	}
	defer l.queue.Done(key)
	after, err := l.do(ctx, key)
	switch {
	case err == nil:
		l.queue.Forget(key)
	case ctx.Err() != nil:
		return true
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		l.queue.AddRateLimited(key)
		return true
	case errors.Is(err, vmi.ErrInvalid):
		l.queue.Forget(key)
		l.log.Warn("cannot be done as it is written", "loop", l.name, "key", key, "err", err)
		return true
	default:
		l.log.Error("tried in vain, will try again", "loop", l.name, "key", key, "err", err)
		l.queue.AddRateLimited(key)
		return true
	}
	if after > 0 {
		l.queue.AddAfter(key, after)
	}
	return true
}
