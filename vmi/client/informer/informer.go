package informer

import (
	"context"
	"errors"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/podvisor/podvisor/vmi"
)

// Object is what an informer can keep: a pointer to any object of the API.
type Object interface {
	runtime.Object
	metav1.Object
}

// Source is where an informer has its objects T from. The clients of package
// client are sources, and so are client-go's own.
type Source[T Object, L runtime.Object] interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (T, error)
	List(ctx context.Context, opts metav1.ListOptions) (L, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
}

// Selection is which objects of its source an informer keeps. The zero value is
// all of them.
type Selection struct {
	// NodeName limits it to the VMIs of one node. Empty: all. Only
	// VirtualMachineInstances have a node; the API server refuses it for other
	// kinds.
	NodeName string
	// TargetNode limits it to the VMIs that a migration moves to one node, or has moved
	// there last. Empty: all.
	TargetNode string
	// Labels is a label selector. Empty: all.
	Labels string
}

// Informer keeps a cache of objects, and calls handlers when they change. Its
// Lister reads the cache.
type Informer[T Object] struct {
	cache.SharedIndexInformer
	Lister[T]
}

// New makes an informer that caches the selected objects of the source, indexed
// by namespace. It starts nothing: call its RunWithContext.
//
// An object that T cannot hold is cached and handled as all others are, as far as it
// can be decoded: [vmi.Unreadable] says so of it, and the Lister lists such objects.
func New[T Object, L runtime.Object](from Source[T, L], s Selection) Informer[T] {
	restrict := func(o *metav1.ListOptions) {
		o.LabelSelector = s.Labels
		selected := fields.Set{}
		if s.NodeName != "" {
			selected["status.nodeName"] = s.NodeName
		}
		if s.TargetNode != "" {
			selected["status.migrationState.targetNode"] = s.TargetNode
		}
		o.FieldSelector = selected.AsSelector().String()
	}
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			restrict(&o)
			l, err := from.List(ctx, o)
			if errors.Is(err, vmi.ErrUnreadable) {
				err = nil // of some of the objects, which are in the list too
			}
			return l, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			restrict(&o)
			return from.Watch(ctx, o)
		},
	}
	example := reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
	i := cache.NewSharedIndexInformer(lw, example, 0, cache.Indexers{
		cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
		unreadable:           indexUnreadable,
	})
	return Informer[T]{i, Lister[T]{i.GetIndexer()}}
}
