package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/tools/reference"

	"github.com/podvisor/podvisor/internal/shorten"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmpool"
)

// Event is one line in the history of an object.
type Event struct {
	// Warning says that something is wrong.
	Warning bool
	vmi.Finding
}

// EventsConfig is the configuration of Events.
type EventsConfig struct {
	// Client writes events. Required.
	Client corev1client.EventsGetter
	// Component is where the events come from, as in virt-handler. Required.
	Component string
	// Node is the node that they come from. Empty: none.
	Node string
	// Logger takes a line for each event that is lost. Nil: nothing is logged.
	Logger *slog.Logger
	// Now is the clock. Nil: time.Now.
	Now func() time.Time
}

// Events writes events. It is safe for concurrent use.
type Events struct {
	EventsConfig
	scheme  *runtime.Scheme
	excess  *record.EventSourceObjectSpamFilter
	dropped atomic.Int64
	// more says that there is something in late.
	more chan struct{}

	mu   sync.Mutex
	last int64 // the number in the name of the last event
	late late
	// runs says that what is late will be written.
	runs bool
	// writes is how many events were written, and fails says that the last try of one failed.
	writes int64
	fails  bool
}

// Limits of events. An object has so many at once, and then one in each interval.
const (
	eventTimeout  = 5 * time.Second
	eventsAtOnce  = 25
	eventInterval = 5 * time.Minute
	eventObjects  = 4096
)

// maxInName is how much of its object's name the name of an event shows: it has at
// most 253 characters, of which a dot and the number take 17.
const maxInName = 253 - 17

// NewEvents makes Events for objects of the kinds of package vmi, and of pools.
func NewEvents(c EventsConfig) (*Events, error) {
	c.Now = clockOr(c.Now)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	e := &Events{EventsConfig: c, scheme: runtime.NewScheme(), more: make(chan struct{}, 1)}
	e.excess = record.NewEventSourceObjectSpamFilter(eventObjects, eventsAtOnce, float32(1/eventInterval.Seconds()), clock(c.Now),
		func(ev *corev1.Event) string { return string(ev.InvolvedObject.UID) })
	vmpool.VirtualMachinePools.AddToScheme(e.scheme)
	return e, vmi.AddToScheme(e.scheme)
}

// Dropped is how many events were not written and will not be.
func (e *Events) Dropped() int64 { return e.dropped.Load() }

// Emit writes an event about the object. It takes at most some seconds, also if
// ctx has ended. While Run runs, an event that cannot be written now is written later, after
// the earlier ones of its object; each is written once. One that cannot be written at all,
// while others can, is logged and counted.
//
// It is written at once if that is possible: an event goes with a change of the object, so
// there is nothing to aggregate, and one that waits is lost if the process is killed.
func (e *Events) Emit(ctx context.Context, o vmi.Object, ev Event) {
	out, err := e.event(o, ev)
	switch {
	case err != nil:
		e.dropped.Add(1)
		e.Logger.Error("drop event", LogKey(o), o.GetNamespace()+"/"+o.GetName(), "reason", ev.Reason, "err", err)
		return
	case e.excess.Filter(out):
		e.drop(out, errExcess)
		return
	case e.postpone(out, nil):
		return
	}
	if err := e.write(ctx, out); err != nil && (!canBeWritten(err) || !e.postpone(out, err)) {
		e.drop(out, err)
	}
}

// errExcess is why an event is not written of an object that has many.
var errExcess = errors.New("too many for the object")

func (e *Events) drop(out *corev1.Event, why error) {
	e.dropped.Add(1)
	o := out.InvolvedObject
	e.Logger.Warn("drop event", "kind", o.Kind, "object", o.Namespace+"/"+o.Name, "reason", out.Reason, "err", why)
}

// postpone has the event written later: for an error, after others of its object, or since
// the API server does not answer. It returns false if nothing writes it later, or if too many
// wait, at all or of its namespace.
func (e *Events) postpone(out *corev1.Event, why error) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fails = e.fails || why != nil
	if !e.runs || !e.fails && e.late.objects[out.InvolvedObject.UID] == nil || !e.late.add(out, e.writes) {
		return false
	}
	select {
	case e.more <- struct{}{}:
	default:
	}
	return true
}

// write writes the event. One of its name is the same one, whose answer was lost.
func (e *Events) write(ctx context.Context, out *corev1.Event) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), eventTimeout)
	defer cancel()
	_, err := e.Client.Events(out.Namespace).Create(ctx, out, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.writes++
	e.fails = false
	return nil
}

// canBeWritten reports whether the event may be written after the error: the API server did
// not refuse it.
func canBeWritten(err error) bool {
	return !isRefused(err) && !apierrors.IsNotFound(err)
}

func isRefused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// Run writes the events that could not be written at once, until ctx ends and a last try is
// made.
func (e *Events) Run(ctx context.Context) {
	e.mu.Lock()
	e.runs = true
	e.mu.Unlock()
	w := &lateWriter{Events: e}
	var again <-chan time.Time
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			continue
		case <-e.more:
		case <-again:
		}
		again = nil
		if wait := w.pass(ctx); wait > 0 {
			again = time.After(wait)
		}
	}
	e.mu.Lock()
	e.runs = false
	all := e.late.all()
	e.mu.Unlock()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lateAtTheLast)
	defer cancel()
	failing := 0
	for _, o := range all {
		for out := e.first(o); out != nil; out = e.first(o) {
			err := last.Err()
			if err == nil {
				err = e.write(last, out)
			}
			if failing++; err == nil {
				failing = 0
			} else {
				e.drop(out, err)
			}
			if failing == mostFailing {
				cancel() // it is the same for the others
			}
			e.over(o)
		}
	}
}

// Begin begins Run, and returns what ends it and waits for its end. It goes on after the end
// of ctx: what is done last has events too.
func (e *Events) Begin(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	wg.Go(func() { e.Run(ctx) })
	return func() { cancel(); wg.Wait() }
}

func (e *Events) event(o vmi.Object, ev Event) (*corev1.Event, error) {
	ref, err := reference.GetReference(e.scheme, o)
	if err != nil {
		return nil, fmt.Errorf("reference to %T: %w", o, err)
	}
	now := e.Now()
	at := metav1.NewTime(now)
	kind := corev1.EventTypeNormal
	if ev.Warning {
		kind = corev1.EventTypeWarning
	}
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cmp.Or(ref.Namespace, metav1.NamespaceDefault),
			Name:      fmt.Sprintf("%s.%x", strings.TrimRight(ref.Name[:min(len(ref.Name), maxInName)], "-."), e.number(now)),
		},
		InvolvedObject: *ref,
		Type:           kind, Reason: ev.Reason, Message: shorten.Head(ev.Message, MaxMessage),
		FirstTimestamp: at, LastTimestamp: at, Count: 1,
		Source:              corev1.EventSource{Component: e.Component, Host: e.Node},
		ReportingController: e.Component, ReportingInstance: e.Node,
	}, nil
}

// number is the time in nanoseconds, or more if that was used before.
func (e *Events) number(now time.Time) int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last = max(now.UnixNano(), e.last+1)
	return e.last
}

// MaxMessage is the length of the longest message of an event, in bytes.
const MaxMessage = 1024

// clock is a clock as client-go wants it.
type clock func() time.Time

func (c clock) Now() time.Time                  { return c() }
func (c clock) Since(t time.Time) time.Duration { return c().Sub(t) }

func clockOr(now func() time.Time) func() time.Time {
	if now == nil {
		return time.Now
	}
	return now
}
