package reconcile

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// deletedFor is how long the deletion of an object is kept.
const deletedFor = time.Minute

// Deleted are objects that this process deleted, until the informer's cache says so.
// The zero value is empty. It is safe for concurrent use.
//
// It closes one race: what follows from a deletion is decided on before the cache has
// it, and another object would be deleted in place of the one that goes already.
type Deleted struct {
	mu sync.Mutex
	at map[types.UID]time.Time
}

// Note keeps the UID of an object that was deleted now. What is older than a minute
// is dropped: the cache has it.
func (d *Deleted) Note(uid types.UID, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.at == nil {
		d.at = map[types.UID]time.Time{}
	}
	for other, at := range d.at {
		if now.Sub(at) > deletedFor {
			delete(d.at, other)
		}
	}
	d.at[uid] = now
}

// Has reports whether the object was deleted.
func (d *Deleted) Has(uid types.UID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.at[uid]
	return ok
}
