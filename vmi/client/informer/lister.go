package informer

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/listers"
	"k8s.io/client-go/tools/cache"

	"github.com/podvisor/podvisor/vmi"
)

// Lister reads the objects of an informer's cache. All that it returns is
// shared: copy it (DeepCopy) before changing it.
//
// It has the methods of client-go's listers: List returns the objects in all namespaces
// that a label selector matches, in no order, and Get one of a kind that is in no
// namespace. Its error is NotFound if the cache does not hold the object.
type Lister[T vmi.Object] struct {
	listers.ResourceIndexer[T]
	store cache.Indexer
}

// newLister makes a lister of a cache. The definition of the kind may be nil.
func newLister[T vmi.Object](store cache.Indexer, d *vmi.Definition) Lister[T] {
	// It is the resource of the errors only.
	resource := schema.GroupResource{Resource: strings.ToLower(reflect.TypeFor[T]().Elem().Name())}
	if d != nil {
		resource = d.Resource().GroupResource()
	}
	return Lister[T]{listers.New[T](store, resource), store}
}

// Namespace reads the objects in one namespace, by List and Get.
func (l Lister[T]) Namespace(namespace string) listers.ResourceIndexer[T] {
	return listers.NewNamespaced(l.ResourceIndexer, namespace)
}

// Key returns the object with the key namespace/name, or the name alone if it is in no
// namespace, or nil if the cache does not hold it. It is for loops, whose queues hold keys.
func (l Lister[T]) Key(key string) T {
	// It never fails for a string.
	o, _, _ := l.store.GetByKey(key)
	v, _ := o.(T)
	return v
}

// Unreadable returns the objects in the cache that cannot be decoded whole, in no
// order: see [vmi.Unreadable]. It costs nothing if there are none.
func (l Lister[T]) Unreadable() []T {
	// It fails for an informer that is wrapped, whose objects are never so.
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
	t, ok := o.(vmi.Object)
	if !ok || vmi.Unreadable(t) == nil {
		return nil, nil
	}
	return []string{unreadable}, nil
}
