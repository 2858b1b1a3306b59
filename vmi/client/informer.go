package client

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/podvisor/podvisor/vmi"
)

// Selection is which machines an informer keeps. The zero value is all of them.
type Selection struct {
	// Namespace limits the selection to one namespace. Empty: all.
	Namespace string
	// NodeName limits it to the machines of one node. Empty: all.
	NodeName string
	// Labels is a label selector. Empty: all.
	Labels string
}

// Informer makes an informer that caches the selected machines, indexed by
// namespace. It starts nothing: call its RunWithContext.
func (c *Client) Informer(s Selection) cache.SharedIndexInformer {
	i := c.VirtualMachineInstances(s.Namespace)
	restrict := func(o *metav1.ListOptions) {
		o.LabelSelector = s.Labels
		if s.NodeName != "" {
			o.FieldSelector = fields.OneTermEqualSelector("status.nodeName", s.NodeName).String()
		}
	}
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			restrict(&o)
			return i.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			restrict(&o)
			return i.Watch(ctx, o)
		},
	}
	return cache.NewSharedIndexInformer(lw, &vmi.VirtualMachineInstance{}, 0,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
}

// Lister reads machines from an informer's cache.
type Lister struct{ store cache.Indexer }

// NewLister reads from the informer's cache.
func NewLister(i cache.SharedIndexInformer) Lister { return Lister{i.GetIndexer()} }

// Get returns the machine of this namespace and name, or nil if the cache does
// not hold it. The object is shared: copy it before changing it.
func (l Lister) Get(namespace, name string) *vmi.VirtualMachineInstance {
	return l.Key(cache.ObjectName{Namespace: namespace, Name: name}.String())
}

// Key returns the machine with the key namespace/name, or nil if the cache does
// not hold it.
func (l Lister) Key(key string) *vmi.VirtualMachineInstance {
	o, ok, err := l.store.GetByKey(key)
	if err != nil || !ok {
		return nil
	}
	return o.(*vmi.VirtualMachineInstance)
}

// List returns all machines in the cache, in no order.
func (l Lister) List() []*vmi.VirtualMachineInstance {
	all := l.store.List()
	out := make([]*vmi.VirtualMachineInstance, len(all))
	for i, o := range all {
		out[i] = o.(*vmi.VirtualMachineInstance)
	}
	return out
}
