package admission

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
)

// Gate limits the memory of the reviews that are worked on at the same time. Small
// reviews and large ones have limits of their own, so that a small one never waits for
// a large one. Reviews wait in the order in which they came, until their requests end.
// The zero value is ready to use.
type Gate struct{ small, large budget }

const (
	// smallReview is the size of the largest review that counts as small: usual objects
	// have a tenth of it.
	smallReview = 64 << 10
	// mostSmall is the size of the small reviews at a time. Of large reviews there is one
	// at a time: half a megabyte of short values takes as much memory as the largest.
	mostSmall = 1 << 20
	mostLarge = 1
)

// Limit is the handler of reviews with the limits of the gate. Nothing of a review is
// read before there is room for it. A review whose size is not known, or larger than
// one of two objects of the API, is refused.
func (g *Gate) Limit(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.ContentLength < 0:
			http.Error(w, "the review has no Content-Length", http.StatusLengthRequired)
			return
		case r.ContentLength > maxReview:
			http.Error(w, fmt.Sprintf("the review has more than %d bytes", maxReview), http.StatusRequestEntityTooLarge)
			return
		}
		leave, err := g.enter(r.Context(), r.ContentLength)
		if err != nil {
			http.Error(w, "too many reviews: "+err.Error(), http.StatusServiceUnavailable)
			return
		}
		defer leave()
		h.ServeHTTP(w, r)
	})
}

// enter waits until the review of that size may be worked on, and returns what to call
// when it is done, or the error of a context that ended first.
func (g *Gate) enter(ctx context.Context, size int64) (leave func(), err error) {
	b, most := &g.small, int64(mostSmall)
	if size > smallReview {
		b, most, size = &g.large, mostLarge, mostLarge
	}
	if err := b.take(ctx, size, most); err != nil {
		return nil, err
	}
	return func() { b.give(size, most) }, nil
}

// budget is a number that is taken and given back in parts.
type budget struct {
	mu      sync.Mutex // protects all
	taken   int64
	waiting []*waiter // the first has come first
}

type waiter struct {
	size  int64
	ready chan struct{} // closed with mu held, when the size is taken
}

func (b *budget) take(ctx context.Context, size, most int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b.mu.Lock()
	if len(b.waiting) == 0 && b.taken+size <= most {
		b.taken += size
		b.mu.Unlock()
		return nil
	}
	w := &waiter{size, make(chan struct{})}
	b.waiting = append(b.waiting, w)
	b.mu.Unlock()
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-w.ready: // at the same moment
		b.taken -= size
	default:
		b.waiting = slices.DeleteFunc(b.waiting, func(o *waiter) bool { return o == w })
	}
	b.admit(most)
	return ctx.Err()
}

func (b *budget) give(size, most int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.taken -= size
	b.admit(most)
}

// admit lets in the first of those that wait, as many as fit.
func (b *budget) admit(most int64) {
	for len(b.waiting) > 0 && b.taken+b.waiting[0].size <= most {
		b.taken += b.waiting[0].size
		close(b.waiting[0].ready)
		b.waiting = b.waiting[1:]
	}
}
