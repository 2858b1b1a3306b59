package informer

import (
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/podvisor/podvisor/vmi"
)

// Lister reads the objects of an informer's cache. All that it returns is
// shared: copy it (DeepCopy) before changing it.
type Lister[T Object] struct{ store cache.Indexer }

// Get returns the object of this namespace and name, or nil if the cache does
// not hold it.
func (l Lister[T]) Get(namespace, name string) T {
	return l.Key(cache.ObjectName{Namespace: namespace, Name: name}.String())
}

// Key returns the object with the key namespace/name, or nil if the cache does
// not hold it.
func (l Lister[T]) Key(key string) T {
	// It never fails for a string.
	o, _, _ := l.store.GetByKey(key)
	v, _ := o.(T)
	return v
}

// List returns all objects in the cache, in no order.
func (l Lister[T]) List() []T { return l.Select("", labels.Everything()) }

// Unreadable returns the objects in the cache that cannot be decoded whole, in no
// order: see [vmi.Unreadable]. It costs nothing if there are none.
func (l Lister[T]) Unreadable() []T {
	// It fails for an informer that New did not make, whose objects are never so.
	found, _ := l.store.ByIndex(unreadable, unreadable)
	var out []T
	for _, o := range found {
		out = append(out, o.(T))
	}
	return out
}

// unreadable is the index, and its one value, of what cannot be decoded.
const unreadable = "unreadable"

func indexUnreadable(o any) ([]string, error) {
	t, ok := o.(Object)
	if !ok || vmi.Unreadable(t) == nil {
		return nil, nil
	}
	return []string{unreadable}, nil
}

// Select returns the objects with these labels in the namespace, or in all of
// them if it is empty, in no order. A nil selector selects all.
func (l Lister[T]) Select(namespace string, s labels.Selector) []T {
	if s == nil {
		s = labels.Everything()
	}
	var out []T
	// It never fails: the objects have metadata, and the informer the index.
	_ = cache.ListAllByNamespace(l.store, namespace, s, func(o any) { out = append(out, o.(T)) })
	return out
}
