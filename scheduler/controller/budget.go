package controller

import (
	"sync"
	"time"

	"github.com/podvisor/podvisor/internal/expiring"
)

// budget limits reads of the API server, and shares them among namespaces: of those
// that wait for one, the one that has read least recently is next. So many pods of one
// namespace delay those of another by one read. It is safe for concurrent use.
type budget struct {
	perSecond, atOnce float64
	// wait is how long a namespace that was refused is waited for: its next try is
	// due before.
	wait time.Duration

	mu      sync.Mutex
	left    float64
	counted time.Time
	reads   expiring.Map[string, time.Time] // when each namespace has read last
	waiting expiring.Map[string, time.Time] // when each namespace was refused last, and has not read since
}

func newBudget(perSecond, atOnce float64, wait time.Duration) *budget {
	return &budget{perSecond: perSecond, atOnce: atOnce, wait: wait, left: atOnce}
}

// readsKept is how long it counts when a namespace has read: so many wait at the same time
// that it is the turn of each within it.
const readsKept = 10 * time.Minute

// accept says whether a pod of the namespace may be read about now.
func (b *budget) accept(namespace string, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.counted.IsZero() {
		b.left = min(b.atOnce, b.left+now.Sub(b.counted).Seconds()*b.perSecond)
	}
	b.counted = now
	if b.left < 1 || b.after(namespace, now) {
		b.waiting.Put(namespace, now, now, b.wait)
		return false
	}
	b.left--
	b.reads.Put(namespace, now, now, readsKept)
	b.waiting.Delete(namespace)
	return true
}

// after reports whether one of the namespaces that wait is before this one.
func (b *budget) after(namespace string, now time.Time) bool {
	reads := b.reads.All(now)
	for other := range b.waiting.All(now) {
		if other != namespace && reads[other].Before(reads[namespace]) {
			return true
		}
	}
	return false
}
