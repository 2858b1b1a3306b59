package controller

import (
	"sync"
	"time"
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
	reads   map[string]time.Time // when each namespace has read last
	waiting map[string]time.Time // when each namespace was refused last, and has not read since
}

func newBudget(perSecond, atOnce float64, wait time.Duration) *budget {
	return &budget{perSecond: perSecond, atOnce: atOnce, wait: wait, left: atOnce, reads: map[string]time.Time{}, waiting: map[string]time.Time{}}
}

// accept says whether a pod of the namespace may be read about now.
func (b *budget) accept(namespace string, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pass(now)
	if b.left < 1 || b.after(namespace) {
		b.waiting[namespace] = now
		return false
	}
	b.left--
	b.reads[namespace] = now
	delete(b.waiting, namespace)
	return true
}

// pass takes what the time since the last call gives, and drops what does not count any
// more.
func (b *budget) pass(now time.Time) {
	if !b.counted.IsZero() {
		b.left = min(b.atOnce, b.left+now.Sub(b.counted).Seconds()*b.perSecond)
	}
	b.counted = now
	for namespace, at := range b.waiting {
		if now.Sub(at) > b.wait {
			delete(b.waiting, namespace)
		}
	}
	for namespace, at := range b.reads {
		if _, waits := b.waiting[namespace]; !waits && now.Sub(at) > time.Duration(b.atOnce/b.perSecond*float64(time.Second)) {
			delete(b.reads, namespace)
		}
	}
}

// after reports whether one of the namespaces that wait is before this one.
func (b *budget) after(namespace string) bool {
	for other := range b.waiting {
		if other != namespace && b.reads[other].Before(b.reads[namespace]) {
			return true
		}
	}
	return false
}
