package client

import (
	"reflect"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/podvisor/podvisor/vmi"
)

// ListerOf reads objects of one kind from an informer's cache. All that it
// returns is shared: copy it (DeepCopy) before changing it.
type ListerOf[T Object] struct{ store cache.Indexer }

// Lister reads machines from an informer's cache.
type Lister = ListerOf[*vmi.VirtualMachineInstance]

// NewLister reads from the cache of an informer of machines.
func NewLister(i cache.SharedIndexInformer) Lister {
	return NewListerOf[*vmi.VirtualMachineInstance](i)
}

// NewListerOf reads from the cache of an informer of T.
func NewListerOf[T Object](i cache.SharedIndexInformer) ListerOf[T] {
	return ListerOf[T]{i.GetIndexer()}
}

// Get returns the object of this namespace and name, or nil if the cache does
// not hold it.
func (l ListerOf[T]) Get(namespace, name string) T {
	return l.Key(cache.ObjectName{Namespace: namespace, Name: name}.String())
}

// Key returns the object with the key namespace/name, or nil if the cache does
// not hold it.
func (l ListerOf[T]) Key(key string) T {
	o, ok, err := l.store.GetByKey(key)
	if err != nil || !ok {
		return nil
	}
	return o.(T)
}

// List returns all objects in the cache, in no order.
func (l ListerOf[T]) List() []T { return typed[T](l.store.List()) }

// Select returns the objects with these labels in the namespace, or in all of
// them if it is empty, in no order. A nil selector selects all.
func (l ListerOf[T]) Select(namespace string, s labels.Selector) []T {
	if s == nil {
		s = labels.Everything()
	}
	var out []T
	add := func(o any) { out = append(out, o.(T)) }
	// Neither fails: the objects have metadata, and the informer the index.
	_ = cache.ListAllByNamespace(l.store, namespace, s, add)
	return out
}

func typed[T any](all []any) []T {
	out := make([]T, len(all))
	for i, o := range all {
		out[i] = o.(T)
	}
	return out
}

// example is an empty object of the kind.
func example[T Object]() T { return reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T) }
