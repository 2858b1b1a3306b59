package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"

	"github.com/podvisor/podvisor/vmi"
)

// Func reconciles the object with one key. It is called again after the returned
// time, if that is not zero and there is no error.
type Func func(ctx context.Context, key string) (after time.Duration, err error)

// Loop calls a Func for queued keys. A key is never handled twice at the same
// time, and the namespaces of the keys take turns. A Loop that never runs holds nothing
// that must be closed.
type Loop struct {
	name    string
	do      Func
	workers int
	log     *slog.Logger
	logKey  string
	metrics workqueue.MetricsProvider

	mu sync.Mutex
	// queue has goroutines, so it is made by Run. Nil: the Loop has not run.
	queue workqueue.TypedRateLimitingInterface[string]
	// early are the keys that were added before, in their order, and has the same keys.
	early []string
	has   map[string]bool
}

// Config is the configuration of a Loop.
type Config struct {
	// Name names the loop in the log and in the metrics of its queue, as in
	// virt-controller-vmi. Required.
	Name string
	// Do is called for each key. Required.
	Do Func
	// Workers is how many keys are handled at the same time. 0: 4.
	Workers int
	// Metrics takes the metrics of the queue. Nil: there are none.
	Metrics workqueue.MetricsProvider
	// Logger takes a line for each failure. Nil: nothing is logged.
	Logger *slog.Logger
	// LogKey names the key in the log. Empty: key.
	LogKey string
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
		name: c.Name, do: c.Do, workers: c.Workers, log: c.Logger, logKey: cmp.Or(c.LogKey, "key"), metrics: c.Metrics,
		has: map[string]bool{},
	}
}

func (l *Loop) newQueue() workqueue.TypedRateLimitingInterface[string] {
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[string]{
		Name: l.name, MetricsProvider: l.metrics,
		Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[string]{Name: l.name, MetricsProvider: l.metrics, Queue: newFair()}),
	})
	return workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstDelay, lastDelay),
		workqueue.TypedRateLimitingQueueConfig[string]{Name: l.name, MetricsProvider: l.metrics, DelayingQueue: delaying})
}

// Add queues a key. A key that waits already is not queued twice. After the end of Run it
// does nothing.
func (l *Loop) Add(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.queue != nil:
		l.queue.Add(key)
	case !l.has[key]:
		l.has[key] = true
		l.early = append(l.early, key)
	}
}

// open makes the queue, with the keys that were added before.
func (l *Loop) open() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = l.newQueue()
	for _, key := range l.early {
		l.queue.Add(key)
	}
	l.early, l.has = nil, nil
}

// Run handles keys until ctx ends and all workers have returned. It is called once.
func (l *Loop) Run(ctx context.Context) {
	l.open()
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
	after, err := l.call(ctx, key)
	log := l.log.With("loop", l.name, l.logKey, key)
	switch {
	case err == nil:
		l.queue.Forget(key)
		if after > 0 {
			l.queue.AddAfter(key, after)
		}
	case ctx.Err() != nil:
	case isConflict(err):
		log.Debug("reconcile: the object changed, retry", "err", err)
		l.queue.AddRateLimited(key)
	case errors.Is(err, vmi.ErrInvalid):
		log.Warn("reconcile: invalid, wait for a change of the object", "err", err)
		l.queue.Forget(key)
	default:
		log.Error("reconcile: retry", "err", err)
		l.queue.AddRateLimited(key)
	}
	return true
}

// call calls the Func. A panic is an error with the stack: one object that
// breaks the code does not end the work on all others.
func (l *Loop) call(ctx context.Context, key string) (after time.Duration, err error) {
	defer func() {
		if r := recover(); r != nil {
			after, err = 0, fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	return l.do(ctx, key)
}

// isConflict reports whether the error is a conflict and, if several errors are
// joined, nothing else.
func isConflict(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(joined.Unwrap(), func(e error) bool { return !isConflict(e) })
	}
	if cause := errors.Unwrap(err); cause != nil {
		return isConflict(cause)
	}
	return apierrors.IsConflict(err)
}
