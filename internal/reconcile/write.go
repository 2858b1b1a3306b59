package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
)

// writeTimeout is how long one write may take.
const writeTimeout = 10 * time.Second

// Writer writes objects T of one kind, and keeps the answers (see [Own]). It is
// safe for concurrent use.
//
// A write that has begun is completed even if its context ends, and one whose answer is
// lost is done once more: otherwise the caller would not know whether it was done, and its
// event would be lost.
type Writer[T vmi.Object, L runtime.Object] struct {
	Own[T]
	// Whole reports whether the status of an object is all that is stored, and not only what is
	// kept of it: then it is replaced ([client.ReplaceStatus]). Nil: of none.
	Whole  func(T) bool
	client *client.Client
	kind   vmi.DefinitionOf[T, L]
}

// NewWriter makes a Writer of the objects of the kind.
func NewWriter[T vmi.Object, L runtime.Object](c *client.Client, kind vmi.DefinitionOf[T, L]) *Writer[T, L] {
	return &Writer[T, L]{client: c, kind: kind}
}

// Status makes the status of the object old that of changed, and returns the
// object as it is stored now. Nothing is written, and old is returned, if the
// two are equal. A change of the object in between is a conflict.
func (w *Writer[T, L]) Status(ctx context.Context, old, changed T) (T, error) {
	tries, write := 0, client.WriteStatus[T]
	if w.Whole != nil && w.Whole(old) {
		write = client.ReplaceStatus[T]
	}
	return w.write(ctx, "status", old, func(ctx context.Context, c client.Objects[T, L]) (T, error) {
		tries++
		o, err := write(ctx, c, old, changed)
		if tries > 1 && apierrors.IsConflict(err) { // perhaps with the first try
			return asWritten(ctx, c, old, changed, err)
		}
		return o, err
	})
}

// Finalizers makes the finalizers of the object old these, and returns the object
// as it is stored now. A change of the object in between is a conflict.
func (w *Writer[T, L]) Finalizers(ctx context.Context, old T, finalizers []string) (T, error) {
	return w.write(ctx, "finalizers", old, func(ctx context.Context, c client.Objects[T, L]) (T, error) {
		return client.WriteMetadata(ctx, c, old, map[string]any{"finalizers": finalizers})
	})
}

// Label makes the label of the object old this value, and returns the object as it is
// stored now. A change of the object in between is a conflict.
func (w *Writer[T, L]) Label(ctx context.Context, old T, key, value string) (T, error) {
	return w.write(ctx, "label "+key, old, func(ctx context.Context, c client.Objects[T, L]) (T, error) {
		return client.WriteMetadata(ctx, c, old, map[string]any{"labels": map[string]string{key: value}})
	})
}

// Unlabel removes the label of the object old.
func (w *Writer[T, L]) Unlabel(ctx context.Context, old T, key string) (T, error) {
	return w.write(ctx, "remove label "+key, old, func(ctx context.Context, c client.Objects[T, L]) (T, error) {
		return client.WriteMetadata(ctx, c, old, map[string]any{"labels": map[string]any{key: nil}})
	})
}

// Labels makes labels of the object old these values and removes others, in one write, and
// returns the object as it is stored now. A change of the object in between is a conflict.
func (w *Writer[T, L]) Labels(ctx context.Context, old T, labels map[string]string, removed ...string) (T, error) {
	return w.write(ctx, "labels", old, func(ctx context.Context, c client.Objects[T, L]) (T, error) {
		return client.WriteMetadata(ctx, c, old, map[string]any{"labels": merged(labels, removed)})
	})
}

// WithoutAnnotations is Labels, and removes annotations in the same write.
func (w *Writer[T, L]) WithoutAnnotations(ctx context.Context, old T, annotations []string, labels map[string]string, removed ...string) (T, error) {
	return w.write(ctx, "labels and annotations", old, func(ctx context.Context, c client.Objects[T, L]) (T, error) {
		return client.WriteMetadata(ctx, c, old, map[string]any{"labels": merged(labels, removed), "annotations": merged(nil, annotations)})
	})
}

// merged are the values that are set, and those that are removed, for a merge patch.
func merged(set map[string]string, removed []string) map[string]any {
	all := map[string]any{}
	for k, v := range set {
		all[k] = v
	}
	for _, k := range removed {
		all[k] = nil
	}
	return all
}

func (w *Writer[T, L]) write(ctx context.Context, what string, old T, do func(context.Context, client.Objects[T, L]) (T, error)) (T, error) {
	var o T
	err := Complete(ctx, func(ctx context.Context) (err error) {
		o, err = do(ctx, client.Of(w.client, w.kind, old.GetNamespace()))
		return err
	})
	// The write was done if it is only the answer that cannot be decoded whole.
	if err != nil && (!errors.Is(err, vmi.ErrUnreadable) || isNil(o)) {
		return old, fmt.Errorf("write %s of %s: %w", what, cache.MetaObjectToName(old), err)
	}
	w.Wrote(o)
	return o, nil
}
