package reconcile

import (
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client/informer"
)

// Caches are the informers that the loops of a process share. The zero value has
// none.
type Caches struct {
	informers []cache.SharedIndexInformer
}

// Cached configures one of the Caches.
type Cached[T vmi.Object] struct {
	// Keep drops from an object what is not read, so that it costs no memory. It
	// must not drop the name, the namespace, the UID and the resourceVersion. It may
	// be called several times for one object. Nil: only the managed fields are
	// dropped, which are dropped in any case.
	Keep func(T)
	// Indexers find objects by a value. Nil: only those that the informer has.
	Indexers cache.Indexers
}

// WithoutApplied drops what kubectl notes of the manifest of an object, which is as long as
// that and which nothing reads. It is a Keep. Annotations that were there stay a map.
func WithoutApplied[T vmi.Object](o T) {
	delete(o.GetAnnotations(), corev1.LastAppliedConfigAnnotation)
}

// Cache adds an informer, which must not run yet, to the caches.
func Cache[T vmi.Object](c *Caches, i informer.Informer[T], k Cached[T]) error {
	if err := i.SetTransform(func(o any) (any, error) {
		if t, ok := o.(T); ok {
			t.SetManagedFields(nil)
			if k.Keep != nil {
				k.Keep(t)
			}
		}
		return o, nil
	}); err != nil {
		return fmt.Errorf("set what is kept of %T: %w", *new(T), err)
	}
	if err := i.AddIndexers(k.Indexers); err != nil {
		return fmt.Errorf("index %T: %w", *new(T), err)
	}
	c.informers = append(c.informers, i)
	return nil
}

// Run keeps the caches up to date until ctx ends.
func (c *Caches) Run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, i := range c.informers {
		wg.Go(func() { i.RunWithContext(ctx) })
	}
}

// Wait waits until the caches hold what there is. It returns false if ctx ends
// before.
func (c *Caches) Wait(ctx context.Context) bool {
	var synced []cache.InformerSynced
	for _, i := range c.informers {
		synced = append(synced, i.HasSynced)
	}
	return cache.WaitForCacheSync(ctx.Done(), synced...)
}

// Key is the key of an object: its namespace and name.
func Key(o metav1.Object) string { return cache.MetaObjectToName(o).String() }

// KeyIn is the key of the object with this name in a namespace.
func KeyIn(namespace, name string) string {
	return cache.ObjectName{Namespace: namespace, Name: name}.String()
}

// KeysIn are the keys of the objects with these names in a namespace.
func KeysIn(namespace string, names ...string) []string {
	var keys []string
	for _, n := range names {
		keys = append(keys, KeyIn(namespace, n))
	}
	return keys
}

// Itself are the keys of a Watch of the objects that the loop is for.
func Itself[T vmi.Object](o T) []string { return []string{Key(o)} }

// OwnedBy are the keys of a Watch of objects whose controller is of this kind:
// the key of that controller.
func OwnedBy[T vmi.Object](kind string) func(T) []string {
	return func(o T) []string {
		ref := metav1.GetControllerOfNoCopy(o)
		if ref == nil || ref.Kind != kind {
			return nil
		}
		return KeysIn(o.GetNamespace(), ref.Name)
	}
}

// Watch queues keys in the loop for each object that appears, changes or goes:
// those that keys returns for it, and after a change also those that it returned
// before. An update for which changed returns false queues nothing. Nil: every
// update counts.
func Watch[T vmi.Object](i informer.Informer[T], l *Loop, keys func(T) []string, changed func(old, now T) bool) error {
	add := func(all []string) {
		for _, k := range all {
			l.Add(k)
		}
	}
	one := func(o any) {
		if d, ok := o.(cache.DeletedFinalStateUnknown); ok {
			o = d.Obj
		}
		if t, ok := o.(T); ok {
			add(keys(t))
		}
	}
	_, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: one, DeleteFunc: one, UpdateFunc: func(a, b any) {
		before, now := a.(T), b.(T)
		if changed != nil && !changed(before, now) {
			return
		}
		after := keys(now)
		add(after)
		for _, k := range keys(before) {
			if !slices.Contains(after, k) {
				l.Add(k)
			}
		}
	}})
	if err != nil {
		return fmt.Errorf("watch %T: %w", *new(T), err)
	}
	return nil
}
