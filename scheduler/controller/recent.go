package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// recentFor is how long it is remembered that something was done with an object.
const recentFor = time.Minute

// recent are when something was done with objects, by their UID: when they were deleted,
// or when their status was written. What is older than recentFor is dropped. The zero
// value is empty. It is safe for concurrent use.
type recent struct {
	mu sync.Mutex
	at map[types.UID]time.Time
}

// note keeps that it was done with the object now.
func (r *recent) note(uid types.UID, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at == nil {
		r.at = map[types.UID]time.Time{}
	}
	for other, at := range r.at {
		if now.Sub(at) > recentFor {
			delete(r.at, other)
		}
	}
	r.at[uid] = now
}

// last is when it was done with the object. Zero: not within recentFor.
func (r *recent) last(uid types.UID, now time.Time) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at, ok := r.at[uid]; ok && now.Sub(at) <= recentFor {
		return at
	}
	return time.Time{}
}

// has reports whether it was done with the object within recentFor.
func (r *recent) has(uid types.UID, now time.Time) bool { return !r.last(uid, now).IsZero() }
