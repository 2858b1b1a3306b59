package informer

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
)

// Factory makes informers that its users share, as the SharedInformerFactory of client-go
// does for Kubernetes' own kinds: [For] returns the one of a kind, which it makes at the
// first call; Start runs those that do not run yet. It is safe for concurrent use.
type Factory struct {
	client    *client.Client
	namespace string

	mu        sync.Mutex
	informers map[shared]*started
	running   sync.WaitGroup
	shut      bool
}

// shared is what an informer of a factory is shared for.
type shared struct {
	kind      schema.GroupVersionKind
	selection Selection
}

// started is an informer of a factory.
type started struct {
	informer any // an Informer of the kind's type
	shared   cache.SharedIndexInformer
	runs     bool
}

// NewFactory makes a Factory of informers of the objects in the namespace, or in all
// namespaces if it is empty. It starts nothing.
func NewFactory(c *client.Client, namespace string) *Factory {
	return &Factory{client: c, namespace: namespace, informers: map[shared]*started{}}
}

// For returns the factory's informer of the selected objects of the kind, as in
// For(f, vmi.VirtualMachines, Selection{}). Two calls for one kind and Selection return the
// same informer. It runs from the next Start on. It is an error if the Selection cannot be,
// as of [NewFiltered], or if the kind is there as another Go type.
func For[T vmi.Object, L runtime.Object](f *Factory, d vmi.DefinitionOf[T, L], s Selection) (Informer[T], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	k := shared{d.GroupVersionKind, s}
	if made, ok := f.informers[k]; ok {
		i, ok := made.informer.(Informer[T])
		if !ok {
			return i, fmt.Errorf("make an informer of %s: the factory has one of another Go type, %T", d.GroupVersionKind, made.informer)
		}
		return i, nil
	}
	i, err := NewFiltered(client.Of(f.client, d, f.namespace), s)
	if err != nil {
		return i, fmt.Errorf("make an informer of %s: %w", d.GroupVersionKind, err)
	}
	f.informers[k] = &started{informer: i, shared: i.SharedIndexInformer}
	return i, nil
}

// Start runs the informers that do not run yet, until ctx ends, and returns at once. After
// Shutdown it does nothing.
func (f *Factory) Start(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, i := range f.informers {
		if i.runs || f.shut {
			continue
		}
		i.runs = true
		f.running.Go(func() { i.shared.RunWithContext(ctx) })
	}
}

// WaitForCacheSync waits until the caches of the informers that run hold what there is. It
// returns false if ctx ends before.
func (f *Factory) WaitForCacheSync(ctx context.Context) bool {
	f.mu.Lock()
	var synced []cache.InformerSynced
	for _, i := range f.informers {
		if i.runs {
			synced = append(synced, i.shared.HasSynced)
		}
	}
	f.mu.Unlock()
	return cache.WaitForCacheSync(ctx.Done(), synced...)
}

// Shutdown waits until the informers have ended, whose contexts the caller ends before.
func (f *Factory) Shutdown() {
	f.mu.Lock()
	f.shut = true
	f.mu.Unlock()
	f.running.Wait()
}
