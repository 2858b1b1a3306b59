package admission

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"golang.org/x/sync/semaphore"
)

// gate limits the memory of the reviews that are worked on at the same time. Small
// reviews and large ones have limits of their own, so that a small one never waits for
// a large one. Reviews wait in the order in which they came, until their requests end.
// The zero value is ready to use.
type gate struct {
	once         sync.Once // makes both
	small, large *semaphore.Weighted
}

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
func (g *gate) Limit(h http.Handler) http.Handler {
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
func (g *gate) enter(ctx context.Context, size int64) (leave func(), err error) {
	g.once.Do(func() { g.small, g.large = semaphore.NewWeighted(mostSmall), semaphore.NewWeighted(mostLarge) })
	room := g.small
	if size > smallReview {
		room, size = g.large, 1
	}
	if err := room.Acquire(ctx, size); err != nil {
		return nil, err
	}
	return func() { room.Release(size) }, nil
}
