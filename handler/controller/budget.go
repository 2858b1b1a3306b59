package controller

import (
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
)

// Writes of a VMI's status that do not change its phase, each with its events: so many
// requests at once, and then one in each interval. The VMIs of one namespace on the
// node share a rate and a number, of which each has an equal part. A launcher chooses
// what it reports; a VMI whose launcher does not lie needs fewer than the least.
const (
	requestsAtOnce      = 12
	leastAtOnce         = 4
	namespaceAtOnce     = 128
	requestInterval     = 10 * time.Second
	namespaceInterval   = 2 * time.Second
	phaseWritesAtOnce   = 10
	phaseWritesInterval = time.Second
)

// budgets are what the VMIs of the node may still write. The zero value is ready to
// use.
type budgets struct {
	mu    sync.Mutex
	of    map[string]*budget // by the key of the VMI
	count map[string]int     // of the VMIs of a namespace
}

// budget is that of one VMI.
type budget struct {
	uid            types.UID
	writes, phases *rate.Limiter
}

// spend takes a write with so many events from the budget of the VMI, or returns how
// long it must wait. A write of another phase, or of another step of a migration, has a budget
// of its own: they go forward only, and the first tries are never delayed.
func (b *budgets) spend(key string, uid types.UID, phase bool, events int, now time.Time) (wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	own := b.take(key, uid)
	l, n := own.phases, 1
	if !phase {
		l, n = own.writes, min(1+events, leastAtOnce)
		all := b.count[namespaceOf(key)]
		l.SetLimitAt(now, min(rate.Every(requestInterval), rate.Every(namespaceInterval)/rate.Limit(all)))
		l.SetBurstAt(now, min(max(namespaceAtOnce/all, leastAtOnce), requestsAtOnce))
	}
	r := l.ReserveN(now, n)
	if wait = r.DelayFrom(now); wait > 0 {
		r.CancelAt(now)
	}
	return wait
}

// take returns the budget of the VMI. One with another UID is another VMI.
func (b *budgets) take(key string, uid types.UID) *budget {
	own := b.of[key]
	if own != nil && own.uid == uid {
		return own
	}
	if b.of == nil {
		b.of, b.count = map[string]*budget{}, map[string]int{}
	}
	if own == nil {
		b.count[namespaceOf(key)]++
	}
	own = &budget{
		uid:    uid,
		writes: rate.NewLimiter(rate.Every(requestInterval), requestsAtOnce),
		phases: rate.NewLimiter(rate.Every(phaseWritesInterval), phaseWritesAtOnce),
	}
	b.of[key] = own
	return own
}

// drop forgets a VMI that is gone.
func (b *budgets) drop(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of[key] == nil {
		return
	}
	delete(b.of, key)
	ns := namespaceOf(key)
	if b.count[ns]--; b.count[ns] == 0 {
		delete(b.count, ns)
	}
}

func namespaceOf(key string) string {
	ns, _, _ := strings.Cut(key, "/")
	return ns
}
