package controller

import (
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/podvisor/podvisor/vmi"
)

// Limits of the tries to create pods that were refused.
const (
	// turnPeriod is the time between two turns of a namespace.
	turnPeriod = 2 * time.Second
	// turnShare is one of how many objects has a turn: each of up to maxTurns times
	// as many is tried every half minute.
	turnShare = 15
	// maxTurns is how many objects of a namespace have a turn at the same time.
	maxTurns = 10
	// released is how many more objects have a turn after a pod was accepted.
	released = 2
	// refusalPeriod is how long the message of a refusal stays although the next one
	// has another: that of a quota has what is used at the moment.
	refusalPeriod = time.Minute
)

// turns says when objects whose pods were refused are tried again. Nothing says
// that a quota, a limit or a label of the namespace has changed, so some objects of
// the namespace are tried every two seconds, in turn. When one is accepted, two
// others follow at once, and so on, so that all are tried soon after a quota was
// lifted, and few while it is full. Nothing is lost with the process: the next one
// tries all of them once.
type turns struct {
	// add queues a key.
	add func(key string)
	now func() time.Time
	// after calls a function later.
	after func(time.Duration, func())

	mu      sync.Mutex
	spaces  map[string]*queue
	said    map[string]said
	stopped bool
}

// queue are the objects of one namespace.
type queue struct {
	keys  []string        // that wait, in the order of their turns
	waits map[string]bool // the same
	turn  map[string]bool // that have their turn
	timer bool
}

// said is the last refusal of an object that was written.
type said struct {
	vmi.Finding
	at time.Time
}

func newTurns(add func(string), now func() time.Time) *turns {
	after := func(d time.Duration, f func()) { time.AfterFunc(d, f) }
	return &turns{add: add, now: now, after: after, spaces: map[string]*queue{}, said: map[string]said{}}
}

// waiting reports whether the object waits for its turn.
func (t *turns) waiting(key string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.spaces[space(key)]
	return q != nil && q.waits[key]
}

// last is the last refusal of an object that waits.
func (t *turns) last(key string) vmi.Finding {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.said[key].Finding
}

// refused makes the object wait for its next turn. It returns the finding that is to
// be written: the one before for some time, if only the message is another.
func (t *turns) refused(key string, f vmi.Finding) vmi.Finding {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.spaces[space(key)]
	if q == nil {
		q = &queue{waits: map[string]bool{}, turn: map[string]bool{}}
		t.spaces[space(key)] = q
	}
	delete(q.turn, key)
	if !q.waits[key] {
		q.waits[key] = true
		q.keys = append(q.keys, key)
	}
	t.start(space(key), q)
	now := t.now()
	if last, ok := t.said[key]; ok && last.Reason == f.Reason && now.Sub(last.at) < refusalPeriod {
		return last.Finding
	}
	t.said[key] = said{f, now}
	return f
}

// accepted gives others their turn, if the object had one.
func (t *turns) accepted(key string) {
	t.mu.Lock()
	q := t.spaces[space(key)]
	var next []string
	if q != nil && q.turn[key] {
		next = q.next(released)
	}
	t.drop(key)
	t.mu.Unlock()
	t.queue(next)
}

// forget drops what is known of an object that needs no turn any more.
func (t *turns) forget(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(key)
}

// stop ends the turns.
func (t *turns) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
}

// drop needs the lock.
func (t *turns) drop(key string) {
	delete(t.said, key)
	q := t.spaces[space(key)]
	if q == nil {
		return
	}
	delete(q.waits, key)
	delete(q.turn, key)
	if len(q.waits) == 0 && len(q.turn) == 0 && !q.timer {
		delete(t.spaces, space(key))
	}
}

// start starts the timer of the namespace. It needs the lock.
func (t *turns) start(namespace string, q *queue) {
	if q.timer {
		return
	}
	q.timer = true
	// Not all namespaces at the same moment.
	t.after(turnPeriod*3/4+rand.N(turnPeriod/4), func() { t.due(namespace) })
}

// due gives some objects of the namespace their turn.
func (t *turns) due(namespace string) {
	t.mu.Lock()
	q := t.spaces[namespace]
	if t.stopped || q == nil {
		t.mu.Unlock()
		return
	}
	q.timer = false
	next := q.next(min(max(1, len(q.waits)/turnShare), maxTurns))
	switch {
	case len(q.waits)+len(q.turn) > 0:
		t.start(namespace, q)
	default:
		delete(t.spaces, namespace)
	}
	t.mu.Unlock()
	t.queue(next)
}

// next are the n objects that have their turn now.
func (q *queue) next(n int) []string {
	var out []string
	for ; n > len(out) && len(q.keys) > 0; q.keys = q.keys[1:] {
		key := q.keys[0]
		if !q.waits[key] {
			continue // it was dropped
		}
		delete(q.waits, key)
		q.turn[key] = true
		out = append(out, key)
	}
	return out
}

func (t *turns) queue(keys []string) {
	for _, key := range keys {
		t.add(key)
	}
}

// space is the namespace of a key.
func space(key string) string {
	namespace, _, _ := strings.Cut(key, "/")
	return namespace
}
