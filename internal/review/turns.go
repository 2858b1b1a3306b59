package review

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/podvisor/podvisor/internal/expiring"
)

const (
	// rememberSource is how long the last turn of a source is remembered, and sourcesKept of
	// how many sources that have left. The ones that left first are forgotten.
	rememberSource = 10 * time.Minute
	sourcesKept    = 1024
)

// turns share places between sources. A source that waits has the next place before those that
// have more places than it. Of those with as many, the one whose last turn is longest ago has
// it, so that sources that ask without end keep no other out. Chance decides between sources
// without a turn. Its methods may be called from any goroutine.
type turns struct {
	places, perSource int

	mu     sync.Mutex
	taken  int
	of     map[string]*share
	queued []*turn
	left   expiring.Map[string, time.Time] // the last turns of sources that have left
}

// share is what a source has: places, and turns that it waits for.
type share struct {
	taken, waiting int
	last           time.Time // when it was given a place. Zero: it is not known.
}

// turn is one that waits. given is closed when it has a place.
type turn struct {
	source string
	chance uint64
	given  chan struct{}
}

func newTurns(places, perSource int) turns {
	return turns{places: places, perSource: perSource, of: map[string]*share{}, left: expiring.Map[string, time.Time]{Most: sourcesKept}}
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
		last, _ := t.left.Get(source, time.Now())
		s = &share{last: last}
		t.of[source] = s
	}
	switch {
	case s.taken+s.waiting >= t.perSource:
		return nil, fmt.Errorf("too many tokens of %s are reviewed", source)
	case t.taken < t.places: // then nothing waits
		t.give(s)
		return nil, nil
	}
	w := &turn{source: source, chance: rand.Uint64(), given: make(chan struct{})}
	s.waiting++
	t.queued = append(t.queued, w)
	return w, nil
}

// give gives a source a place.
func (t *turns) give(s *share) {
	t.taken++
	s.taken++
	s.last = time.Now()
}

// leave gives a place back, and to the next source.
func (t *turns) leave(source string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taken--
	t.of[source].taken--
	t.drop(source)
	if len(t.queued) == 0 {
		return
	}
	next := slices.MinFunc(t.queued, t.compare)
	t.dequeue(next)
	t.give(t.of[next.source])
	close(next.given)
}

// compare is less than 0 if a has a place before b.
func (t *turns) compare(a, b *turn) int {
	x, y := t.of[a.source], t.of[b.source]
	return cmp.Or(cmp.Compare(x.taken, y.taken), x.last.Compare(y.last), cmp.Compare(a.chance, b.chance))
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

// drop forgets a source that has nothing, except when its last turn was.
func (t *turns) drop(source string) {
	s := t.of[source]
	if s.taken+s.waiting > 0 {
		return
	}
	delete(t.of, source)
	if !s.last.IsZero() {
		t.left.Put(source, s.last, time.Now(), rememberSource)
	}
}
