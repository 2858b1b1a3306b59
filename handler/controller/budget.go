package controller

import (
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
)

// Writes of a VMI's status that do not change its phase: so many at once, and then
// one in each interval. The VMIs of one namespace on the node share a rate, of which
// each has an equal part. A launcher chooses what it reports; a VMI whose launcher
// does not lie takes fewer than the first.
const (
	writesAtOnce       = 10
	writeInterval      = 10 * time.Second
	namespaceInterval  = 2 * time.Second
	phaseWritesAtOnce  = 10
	phaseWriteInterval = time.Second
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

// spend takes a write from the budget of the VMI, or returns how long it must wait.
// A write of another phase has a budget of its own: phases go forward only, and the
// first tries are never delayed.
func (b *budgets) spend(key string, uid types.UID, phase bool, now time.Time) (wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	own := b.take(key, uid)
	l := own.phases
	if !phase {
		l = own.writes
		l.SetLimitAt(now, min(rate.Every(writeInterval), rate.Every(namespaceInterval)/rate.Limit(b.count[namespaceOf(key)])))
	}
	r := l.ReserveN(now, 1)
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
		writes: rate.NewLimiter(rate.Every(writeInterval), writesAtOnce),
		phases: rate.NewLimiter(rate.Every(phaseWriteInterval), phaseWritesAtOnce),
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
