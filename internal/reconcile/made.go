package reconcile

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/internal/expiring"
	"github.com/podvisor/podvisor/vmi"
)

// madeFor is how long an object that was created is taken for existing although the
// cache does not have it. It may have been deleted before the cache saw it.
const madeFor = 15 * time.Second

// Made are objects that this process created, until the informer's cache has them.
// The zero value is empty. It is safe for concurrent use.
//
// It closes one race: what follows from a creation is decided on before the cache has
// the object, and the same object would be created once more.
type Made[T vmi.Object] struct {
	objects expiring.Map[string, T]
}

// Note keeps an object that was created now.
func (m *Made[T]) Note(o T, now time.Time) { m.objects.Put(Key(o), o, now, madeFor) }

// Seen drops the object with this key and UID, which the cache has, or had.
func (m *Made[T]) Seen(key string, uid types.UID) {
	m.objects.DeleteIf(key, func(o T) bool { return o.GetUID() == uid })
}

// In are the objects of the namespace that the cache does not have yet.
func (m *Made[T]) In(namespace string, now time.Time) []T {
	var out []T
	for _, o := range m.objects.All(now) {
		if o.GetNamespace() == namespace {
			out = append(out, o)
		}
	}
	return out
}

// Of is the object with this key, if the cache does not have it yet. Nil: there is
// none.
func (m *Made[T]) Of(key string, now time.Time) T {
	o, _ := m.objects.Get(key, now)
	return o
}
