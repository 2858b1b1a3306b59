package reconcile

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// Limits of events that could not be written yet: how many there are, each of at most 2 KiB
// or so; the times between two tries of one, and of all; and how long the last try takes when
// the process ends. A namespace has no more of them than there is room for others.
const (
	mostLate      = 8192
	firstLateTry  = 100 * time.Millisecond
	lastLateTry   = 10 * time.Second
	lateAtTheLast = 3 * time.Second
	// mostFailing is how many objects may fail, one after the other, before the API server is
	// taken for away.
	mostFailing = 4
	// mostTries is how often the API server may answer that it failed to write an event while
	// it writes others between its tries: it is the event, and not the API server.
	mostTries = 12
)

// late are events that could not be written yet. Those of an object are written in their
// order; one that fails holds up no other object. It needs the lock of its Events.
type late struct {
	objects map[types.UID]*lateObject
	// number is how many events there are, and of is how many each namespace has.
	number int
	of     map[string]int
	// began is how many objects there were.
	began int64
}

// lateObject are the late events of an object, the oldest first.
type lateObject struct {
	events []*corev1.Event
	began  int64 // its place among the objects
	// due is when the first event is tried again, which was waited for so long. Zero: now.
	due    time.Time
	waited time.Duration
	// tries is how often the API server failed to write the first event while it wrote others,
	// and written is how many it had written at the last one.
	tries   int
	written int64
}

// add adds the event. It is false if there are too many, at all or of its namespace.
func (l *late) add(out *corev1.Event, written int64) bool {
	if l.of[out.Namespace] >= mostLate-l.number {
		return false
	}
	if l.objects == nil {
		l.objects, l.of = map[types.UID]*lateObject{}, map[string]int{}
	}
	uid := out.InvolvedObject.UID
	o := l.objects[uid]
	if o == nil {
		l.began++
		o = &lateObject{began: l.began, written: written}
		l.objects[uid] = o
	}
	o.events = append(o.events, out)
	l.number++
	l.of[out.Namespace]++
	return true
}

// remove removes the first event of the object.
func (l *late) remove(o *lateObject) {
	out := o.events[0]
	l.number--
	if l.of[out.Namespace]--; l.of[out.Namespace] == 0 {
		delete(l.of, out.Namespace)
	}
	o.events[0] = nil
	o.events, o.due, o.waited, o.tries = o.events[1:], time.Time{}, 0, 0
	if len(o.events) == 0 {
		delete(l.objects, out.InvolvedObject.UID)
	}
}

// all are the objects in the order in which they are tried: one that failed comes after
// those that did not.
func (l *late) all() []*lateObject {
	return slices.SortedFunc(maps.Values(l.objects), func(a, b *lateObject) int {
		return cmp.Or(cmp.Compare(a.tries, b.tries), a.due.Compare(b.due), cmp.Compare(a.began, b.began))
	})
}

// again notes that the first event of the object failed, after so many were written. It is
// false if it is not to be tried again.
func (o *lateObject) again(err error, written int64, now time.Time) bool {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) && status.Status().Code == http.StatusInternalServerError {
		if written > o.written {
			o.tries++
		}
		o.written = written
	}
	o.waited = longer(o.waited)
	o.due = now.Add(o.waited)
	return o.tries < mostTries
}

// longer is the time to wait after this one.
func longer(wait time.Duration) time.Duration { return min(max(2*wait, firstLateTry), lastLateTry) }

// lateWriter writes late events. Run has one.
type lateWriter struct {
	*Events
	// until is when the API server is asked again, which was waited for so long. Zero: it is
	// not taken for away.
	until  time.Time
	waited time.Duration
}

// pass tries to write what is late and due. It returns after how long to go on. 0: nothing is
// late.
func (w *lateWriter) pass(ctx context.Context) time.Duration {
	if left := time.Until(w.until); left > 0 {
		return left
	}
	failing := 0
	for _, o := range w.waiting() {
		if w.writeOf(ctx, o) {
			failing = 0
			continue
		}
		if failing++; failing == mostFailing || ctx.Err() != nil {
			w.waited = longer(w.waited)
			w.until = time.Now().Add(w.waited)
			return w.waited
		}
	}
	w.until, w.waited = time.Time{}, 0
	return w.next()
}

// writeOf writes the events of the object, and returns whether no one has to be tried again.
func (w *lateWriter) writeOf(ctx context.Context, o *lateObject) bool {
	for out := w.first(o); out != nil; out = w.first(o) {
		err := w.write(ctx, out)
		if err != nil && canBeWritten(err) && (w.again(o, err) || ctx.Err() != nil) {
			return false
		}
		if err != nil {
			w.drop(out, err)
		}
		w.over(o)
	}
	return true
}

// waiting are the objects whose first event is due.
func (e *Events) waiting() []*lateObject {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	return slices.DeleteFunc(e.late.all(), func(o *lateObject) bool { return o.due.After(now) })
}

// next is after how long the next event is due. 0: there is none.
func (e *Events) next() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	var next time.Duration
	for _, o := range e.late.objects {
		if left := max(time.Until(o.due), time.Millisecond); next == 0 || left < next {
			next = left
		}
	}
	return next
}

// first is the first late event of the object, or nil.
func (e *Events) first(o *lateObject) *corev1.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(o.events) == 0 {
		return nil
	}
	return o.events[0]
}

// again notes that the first event of the object failed. It is false if it is not to be tried
// again.
func (e *Events) again(o *lateObject, err error) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fails = true
	return o.again(err, e.writes, time.Now())
}

// over removes the first event of the object.
func (e *Events) over(o *lateObject) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.late.remove(o)
}
