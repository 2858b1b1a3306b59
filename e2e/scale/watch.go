package scale

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// seen is which objects of a kind there are, and which of them run, by one watch.
type seen struct {
	mu      sync.Mutex
	there   map[string]bool // whether it runs, by name
	changed chan struct{}   // closed and made anew by each change
}

// see watches the objects of a kind until ctx ends.
func (r *rig) see(ctx context.Context, k kind) *seen {
	s := &seen{there: map[string]bool{}, changed: make(chan struct{})}
	note := func(o any, gone bool) {
		if t, ok := o.(cache.DeletedFinalStateUnknown); ok {
			o = t.Obj
		}
		at, err := meta.Accessor(o)
		if err != nil {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if gone {
			delete(s.there, at.GetName())
		} else {
			s.there[at.GetName()] = at.GetAnnotations()[runsNote] != ""
		}
		close(s.changed)
		s.changed = make(chan struct{})
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return k.list(ctx, r, o) },
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return k.watch(ctx, r, o)
			},
		},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc: func(o any) { note(o, false) }, UpdateFunc: func(_, o any) { note(o, false) }, DeleteFunc: func(o any) { note(o, true) },
		},
		// Of thousands of objects the name is kept and whether it runs.
		Transform: func(o any) (any, error) {
			at, err := meta.Accessor(o)
			if err != nil {
				return o, nil //nolint:nilerr // what is no object stays as it is
			}
			m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: at.GetNamespace(), Name: at.GetName(), UID: at.GetUID(), ResourceVersion: at.GetResourceVersion()}}
			if k.runs(at) {
				m.Annotations = map[string]string{runsNote: "true"}
			}
			return m, nil
		},
	})
	go informer.RunWithContext(ctx)
	return s
}

// runsNote says of an object in the cache that it runs.
const runsNote = "runs"

// until waits until so many objects run of so many that there are.
func (s *seen) until(ctx context.Context, running, there int) error {
	for {
		s.mu.Lock()
		runs := 0
		for _, is := range s.there {
			if is {
				runs++
			}
		}
		all, changed := len(s.there), s.changed
		s.mu.Unlock()
		if runs == running && all == there {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d run, not %d of %d: %w", runs, all, running, there, ctx.Err())
		}
	}
}
