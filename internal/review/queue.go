package review

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"
)

// Key is what a question is about: the hash of a token. No token is kept.
type Key [sha256.Size]byte

// KeyOf is the key of a token.
func KeyOf(token string) Key { return sha256.Sum256([]byte(token)) }

// Limits say how many questions there are at a time.
type Limits struct {
	// AtOnce is how many are asked at a time, and PerSource how many of one source there are,
	// with those that wait for their turn. Required.
	AtOnce, PerSource int
	// Wait is how long a question waits for its turn. Required.
	Wait time.Duration
}

// Queue has questions asked, each once for all who wait for its answer. Sources take turns: one
// with many questions waits for one with few, and one with a turn lately for one without. The
// methods may be called from any goroutine.
type Queue[V any] struct {
	wait  time.Duration
	turns turns

	mu    sync.Mutex
	asked map[Key]*answer[V] // what is being asked, or waits for it
}

// answer is that of a question, for all who ask it meanwhile.
type answer[V any] struct {
	done  chan struct{} // closed when the rest is known
	value V
	err   error
}

// NewQueue makes a queue without questions.
func NewQueue[V any](l Limits) *Queue[V] {
	return &Queue[V]{wait: l.Wait, turns: newTurns(l.AtOnce, l.PerSource), asked: map[Key]*answer[V]{}}
}

// Do returns what ask returns. While it is called for a key, the others who ask for the key wait
// for the same answer, until their ctx ends. The ctx of ask does not end with the request of the
// first: ask limits its own time. An error may also be that it was not the turn of the source in
// time, or that the source has too many questions.
func (q *Queue[V]) Do(ctx context.Context, key Key, source string, ask func(context.Context) (V, error)) (V, error) {
	a, first := q.begin(key)
	if first {
		// The others that wait for it do not depend on this request.
		a.value, a.err = q.inTurn(context.WithoutCancel(ctx), source, ask)
		q.end(key)
		close(a.done)
		return a.value, a.err
	}
	select {
	case <-a.done:
		return a.value, a.err
	case <-ctx.Done():
		var none V
		return none, ctx.Err()
	}
}

// Len is how many questions are asked, or wait for their turn.
func (q *Queue[V]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.asked)
}

// inTurn asks when it is the turn of the source.
func (q *Queue[V]) inTurn(ctx context.Context, source string, ask func(context.Context) (V, error)) (V, error) {
	waiting, cancel := context.WithTimeout(ctx, q.wait)
	leave, err := q.turns.take(waiting, source)
	cancel()
	if err != nil {
		var none V
		return none, err
	}
	defer leave()
	return ask(ctx)
}

// begin returns the answer of the key. The first one who asks has it asked; the others wait,
// and need no turn.
func (q *Queue[V]) begin(key Key) (a *answer[V], first bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if a := q.asked[key]; a != nil {
		return a, false
	}
	a = &answer[V]{done: make(chan struct{})}
	q.asked[key] = a
	return a, true
}

func (q *Queue[V]) end(key Key) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.asked, key)
}
