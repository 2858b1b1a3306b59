package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/tools/reference"

	"github.com/podvisor/podvisor/internal/shorten"
	"github.com/podvisor/podvisor/vmi"
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
	scheme *runtime.Scheme
	excess *record.EventSourceObjectSpamFilter

	mu   sync.Mutex
	last int64 // the number in the name of the last event
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

// NewEvents makes Events for objects of the kinds of package vmi.
func NewEvents(c EventsConfig) (*Events, error) {
	c.Now = clockOr(c.Now)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	e := &Events{EventsConfig: c, scheme: runtime.NewScheme()}
	e.excess = record.NewEventSourceObjectSpamFilter(eventObjects, eventsAtOnce, float32(1/eventInterval.Seconds()), clock(c.Now),
		func(ev *corev1.Event) string { return string(ev.InvolvedObject.UID) })
	return e, vmi.AddToScheme(e.scheme)
}

// Emit writes an event about the object. It takes at most some seconds, also if
// ctx has ended. An event that cannot be written is logged and lost.
//
// There is no queue: an event goes with a change of the object, so there is
// nothing to aggregate, and one in a queue would be lost when the process ends.
func (e *Events) Emit(ctx context.Context, o vmi.Object, ev Event) {
	log := e.Logger.With(LogKey(o), o.GetNamespace()+"/"+o.GetName(), "reason", ev.Reason)
	out, err := e.event(o, ev)
	switch {
	case err != nil:
		log.Error("drop event", "err", err)
		return
	case e.excess.Filter(out):
		log.Warn("drop event: too many for the object")
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), eventTimeout)
	defer cancel()
	if _, err := e.Client.Events(out.Namespace).Create(ctx, out, metav1.CreateOptions{}); err != nil {
		log.Warn("drop event", "err", err)
	}
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
