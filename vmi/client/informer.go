package client

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// Selection is which objects an informer keeps. The zero value is all of them.
type Selection struct {
	// Namespace limits the selection to one namespace. Empty: all.
	Namespace string
	// NodeName limits it to the machines of one node. Empty: all. Only
	// VirtualMachineInstances have a node; the API server refuses it for other
	// kinds.
	NodeName string
	// Labels is a label selector. Empty: all.
	Labels string
}

// Informer makes an informer that caches the selected machines, indexed by
// namespace. It starts nothing: call its RunWithContext. Read the cache by
// [NewLister].
func (c *Client) Informer(s Selection) cache.SharedIndexInformer {
	return NewInformer(c.VirtualMachineInstances(s.Namespace), s)
}

// NewInformer makes an informer that caches the selected objects of any kind,
// indexed by namespace. The objects must be those of the selection's namespace:
//
//	client.NewInformer(c.VirtualMachines(s.Namespace), s)
//
// It starts nothing: call its RunWithContext. Read the cache by [NewListerOf].
func NewInformer[T Object, L runtime.Object](o Objects[T, L], s Selection) cache.SharedIndexInformer {
	restrict := func(opts *metav1.ListOptions) {
		opts.LabelSelector = s.Labels
		if s.NodeName != "" {
			opts.FieldSelector = fields.OneTermEqualSelector("status.nodeName", s.NodeName).String()
		}
	}
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			restrict(&opts)
			return o.List(ctx, opts)
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			restrict(&opts)
			return o.Watch(ctx, opts)
		},
	}
	return cache.NewSharedIndexInformer(lw, example[T](), 0,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
}
