package review

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// turns share places between sources. A source that waits has the next place before those that
// have more places than it, so that many sources with many requests keep no other out. Its
// methods may be called from any goroutine.
type turns struct {
	places, perSource int

	mu     sync.Mutex
	taken  int
	of     map[string]*share
	queued []*turn // in the order in which they came
}

// share is what a source has: places, and turns that it waits for.
type share struct{ taken, waiting int }

// turn is one that waits. given is closed when it has a place.
type turn struct {
	source string
	given  chan struct{}
}

func newTurns(places, perSource int) turns {
	return turns{places: places, perSource: perSource, of: map[string]*share{}}
}

// take waits for a place until ctx ends. The function that it returns gives the place back. A
// source that has or waits for as many as it may is refused at once.
func (t *turns) take(ctx context.Context, source string) (leave func(), err error) {
	waits, err := t.ask(source)
	if err != nil {
		return nil, err
	}
	leave = sync.OnceFunc(func() { t.leave(source) })
	if waits == nil {
		return leave, nil
	}
	select {
	case <-waits.given:
		return leave, nil
	case <-ctx.Done():
	}
	if t.forget(waits) {
		return nil, fmt.Errorf("the tokens of others are reviewed before those of %s: %w", source, ctx.Err())
	}
	return leave, nil // it was given meanwhile
}

// ask takes a place, or a turn to wait for one.
func (t *turns) ask(source string) (*turn, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.of[source]
	if s == nil {
		s = &share{}
		t.of[source] = s
	}
	switch {
	case s.taken+s.waiting >= t.perSource:
		return nil, fmt.Errorf("too many tokens of %s are reviewed", source)
	case t.taken < t.places: // then nothing waits
		t.taken++
		s.taken++
		return nil, nil
	}
	w := &turn{source: source, given: make(chan struct{})}
	s.waiting++
	t.queued = append(t.queued, w)
	return w, nil
}

// leave gives a place back, and to the source with the fewest.
func (t *turns) leave(source string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taken--
	t.of[source].taken--
	t.drop(source)
	if len(t.queued) == 0 {
		return
	}
	next := slices.MinFunc(t.queued, func(a, b *turn) int { return t.of[a.source].taken - t.of[b.source].taken })
	t.dequeue(next)
	t.taken++
	t.of[next.source].taken++
	close(next.given)
}

// forget ends the waiting. It is false if the place was given.
func (t *turns) forget(w *turn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slices.Contains(t.queued, w) {
		return false
	}
	t.dequeue(w)
	t.drop(w.source)
	return true
}

func (t *turns) dequeue(w *turn) {
	t.queued = slices.DeleteFunc(t.queued, func(other *turn) bool { return other == w })
	t.of[w.source].waiting--
}

// drop forgets a source that has nothing.
func (t *turns) drop(source string) {
	if *t.of[source] == (share{}) {
		delete(t.of, source)
	}
}
