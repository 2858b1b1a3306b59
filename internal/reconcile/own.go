package reconcile

import (
	"sync"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"

	"github.com/podvisor/podvisor/vmi"
)

// Own are objects as the API server answered to the last write of this process,
// until the informer's cache has caught up. The zero value is empty. It is safe
// for concurrent use.
//
// It closes one race: what follows from a write is observed within milliseconds,
// often before the cache has the write itself. A decision by the cache's object
// would try the same write again and get a conflict. The result does not depend
// on it.
type Own[T vmi.Object] struct {
	mu      sync.Mutex
	objects map[string]T
}

// Wrote keeps the object that the API server answered.
func (w *Own[T]) Wrote(o T) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.objects == nil {
		w.objects = map[string]T{}
	}
	w.objects[cache.MetaObjectToName(o).String()] = o
}

// Latest returns the newer of the cached object with this key and the kept one.
// The cached object is nil if the cache does not hold one; then the object is
// gone, and Latest returns nil.
func (w *Own[T]) Latest(key string, cached T) T {
	w.mu.Lock()
	defer w.mu.Unlock()
	own, ok := w.objects[key]
	if !ok {
		return cached
	}
	if isNil(cached) || cached.GetUID() != own.GetUID() || !released(own) && !Older(cached, own) {
		delete(w.objects, key)
		return cached
	}
	return own
}

// Len is how many objects are kept.
func (w *Own[T]) Len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.objects)
}

func isNil[T vmi.Object](o T) bool {
	var none T
	return any(o) == any(none)
}

// released reports whether the last write removed the last finalizer of a
// deleted object. The answer to it may carry the resourceVersion from before the
// write.
func released(o vmi.Object) bool {
	return o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0
}

// Older reports whether a is known to be an earlier state than b.
func Older(a, b vmi.Object) bool {
	c, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && c < 0
}
