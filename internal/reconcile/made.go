package reconcile

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/vmi/client/informer"
)

// madeFor is how long an object that was created is taken for existing although the
// cache does not have it. It may have been deleted before the cache saw it.
const madeFor = 15 * time.Second

// Made are objects that this process created, until the informer's cache has them.
// The zero value is empty. It is safe for concurrent use.
//
// It closes one race: what follows from a creation is decided on before the cache has
// the object, and the same object would be created once more.
type Made[T informer.Object] struct {
	mu      sync.Mutex
	objects map[string]madeObject[T]
}

type madeObject[T informer.Object] struct {
	object T
	until  time.Time
}

// Note keeps an object that was created now.
func (m *Made[T]) Note(o T, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.objects == nil {
		m.objects = map[string]madeObject[T]{}
	}
	m.objects[Key(o)] = madeObject[T]{o, now.Add(madeFor)}
}

// Seen drops the object with this key and UID, which the cache has, or had.
func (m *Made[T]) Seen(key string, uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if o, ok := m.objects[key]; ok && o.object.GetUID() == uid {
		delete(m.objects, key)
	}
}

// In are the objects of the namespace that the cache does not have yet.
func (m *Made[T]) In(namespace string, now time.Time) []T {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []T
	for key, o := range m.objects {
		switch {
		case now.After(o.until):
			delete(m.objects, key)
		case o.object.GetNamespace() == namespace:
			out = append(out, o.object)
		}
	}
	return out
}

// Of is the object with this key, if the cache does not have it yet. Nil: there is
// none.
func (m *Made[T]) Of(key string, now time.Time) T {
	m.mu.Lock()
	defer m.mu.Unlock()
	o, ok := m.objects[key]
	if !ok || now.After(o.until) {
		delete(m.objects, key)
		var none T
		return none
	}
	return o.object
}
