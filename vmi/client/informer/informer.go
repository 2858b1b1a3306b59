package informer

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
)

// Selection is which objects of its source an informer keeps. The zero value is
// all of them.
type Selection struct {
	// NodeName limits it to the VMIs of one node. Empty: all. Only
	// VirtualMachineInstances have a node.
	NodeName string
	// TargetNode limits it to the VMIs that a migration moves to one node, or has moved
	// there last. Empty: all. Only VirtualMachineInstances move.
	TargetNode string
	// Labels is a label selector, as "app=web,tier!=test". Empty: all.
	Labels string
}

// Informer keeps a cache of objects, and calls handlers when they change. It is
// client-go's, whose methods RunWithContext, AddEventHandler and AddIndexers it has, with
// a [Lister] of objects T.
type Informer[T vmi.Object] struct {
	cache.SharedIndexInformer
	lister Lister[T]
}

// Lister reads the cache.
func (i Informer[T]) Lister() Lister[T] { return i.lister }

// NewFiltered makes an informer that caches the selected objects of the source, a client of
// package client or one of client-go's, indexed by namespace. It starts nothing: call its RunWithContext. A [Factory] makes informers
// that several users share.
//
// It is an error if the Selection cannot be: a Labels that is no selector, or a field that
// objects of the source's kind are not selected by. The latter is known of the clients of
// package client; the API server refuses it for others.
//
// An object that T cannot hold is cached and handled as all others are, as far as it
// can be decoded: [vmi.Unreadable] says so of it, and the Lister lists such objects.
func NewFiltered[T vmi.Object, L runtime.Object](from client.Watched[T, L], s Selection) (Informer[T], error) {
	d := definitionOf(from)
	restrict, err := s.options(d)
	if err != nil {
		return Informer[T]{}, err
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
	return wrap[T](i, d), nil
}

// Wrap returns the informer as one of objects T, as for those that client-go makes
// for Kubernetes' own kinds. It must hold objects T only, and be indexed by
// namespace if its Lister lists by namespace.
func Wrap[T vmi.Object](i cache.SharedIndexInformer) Informer[T] { return wrap[T](i, nil) }

func wrap[T vmi.Object](i cache.SharedIndexInformer, d *vmi.Definition) Informer[T] {
	return Informer[T]{i, newLister[T](i.GetIndexer(), d)}
}

// definitionOf is the definition of the source's kind, or nil if it is not known.
func definitionOf(source any) *vmi.Definition {
	known, ok := source.(interface{ Definition() vmi.Definition })
	if !ok {
		return nil
	}
	d := known.Definition()
	return &d
}

// options sets the options of a request for what is selected of the kind, which may be
// nil.
func (s Selection) options(d *vmi.Definition) (func(*metav1.ListOptions), error) {
	if _, err := labels.Parse(s.Labels); err != nil {
		return nil, fmt.Errorf("Selection.Labels: %w", err)
	}
	selected := fields.Set{}
	for _, f := range []struct{ name, path, value string }{
		{"NodeName", "status.nodeName", s.NodeName},
		{"TargetNode", "status.migrationState.targetNode", s.TargetNode},
	} {
		switch {
		case f.value == "":
		case d != nil && !slices.Contains(d.Selectable, f.path):
			return nil, fmt.Errorf("select by Selection.%s: the kind %s is not selected by the field %s", f.name, d.Kind, f.path)
		default:
			selected[f.path] = f.value
		}
	}
	return func(o *metav1.ListOptions) {
		o.LabelSelector, o.FieldSelector = s.Labels, selected.AsSelector().String()
	}, nil
}
