package client

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/internal/vmi/jsontree"
	"github.com/podvisor/podvisor/vmi"
)

// Patched are objects T that can be patched, as [Objects] and what embeds it.
type Patched[T vmi.Object] interface {
	Patch(ctx context.Context, name string, pt types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (T, error)
}

// WriteStatus makes the status of the object old what it is in changed, by one
// merge patch that holds only the difference. The patch carries old's
// resourceVersion, so it fails with a conflict if the object was written in
// between. Nothing is written, and old is returned, if the two are equal. An
// object without a field Status is an error.
//
// Otherwise the object is returned as it is stored now. [Objects] answer with its metadata,
// without those of managers of fields, and with what changed has beside them: the answer of
// the API server holds no more.
func WriteStatus[T vmi.Object](ctx context.Context, o Patched[T], old, changed T) (T, error) {
	from, to := status(old), status(changed)
	if from == nil || to == nil {
		return none[T](), fmt.Errorf("write the status of %s/%s: %T has no field Status", old.GetNamespace(), old.GetName(), old)
	}
	if equality.Semantic.DeepEqual(from, to) {
		return old, nil
	}
	patch, err := statusPatch(from, to, old.GetUID(), old.GetResourceVersion())
	if err != nil {
		return none[T](), fmt.Errorf("compare the status of %s/%s: %w", old.GetNamespace(), old.GetName(), err)
	}
	meta := metadataOf(changed)
	brief, ok := o.(interface {
		patchBriefly(ctx context.Context, name string, patch []byte, subresource string) (metav1.ObjectMeta, error)
	})
	// Of an object that cannot be decoded whole, the answer says why.
	if !ok || !meta.IsValid() || vmi.Unreadable(changed) != nil {
		return o.Patch(ctx, old.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	}
	is, err := brief.patchBriefly(ctx, old.GetName(), patch, "status")
	if err != nil {
		return none[T](), err
	}
	now := changed.DeepCopyObject().(T)
	metadataOf(now).Set(reflect.ValueOf(is))
	return now, nil
}

// metadataOf is the field with the metadata of the object. It is not valid if there is none.
func metadataOf(o vmi.Object) reflect.Value {
	f := reflect.Indirect(reflect.ValueOf(o)).FieldByName("ObjectMeta")
	if !f.IsValid() || f.Type() != reflect.TypeFor[metav1.ObjectMeta]() {
		return reflect.Value{}
	}
	return f
}

// briefly are the answers that are asked for of which the metadata alone is needed. A server
// that has no such answer sends the object.
const briefly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

// patchBriefly sends a merge patch, and decodes only the metadata of the answer.
func (c Objects[T, L]) patchBriefly(ctx context.Context, name string, patch []byte, subresource string) (metav1.ObjectMeta, error) {
	r := c.one(c.rest.Patch(types.MergePatchType), &metav1.PatchOptions{}, name, subresource).SetHeader("Accept", briefly).Body(patch).Do(ctx)
	if err := r.Error(); err != nil {
		return metav1.ObjectMeta{}, err
	}
	raw, err := r.Raw()
	var o struct {
		Metadata struct {
			metav1.ObjectMeta
			ManagedFields json.RawMessage `json:"managedFields"` // most of it, and not read
		}
	}
	if err == nil {
		err = json.Unmarshal(raw, &o)
	}
	return o.Metadata.ObjectMeta, err
}

// status points to the status of the object, or is nil if it has none.
func status(o vmi.Object) any {
	if s := reflect.Indirect(reflect.ValueOf(o)).FieldByName("Status"); s.IsValid() {
		return s.Addr().Interface()
	}
	return nil
}

// statusPatch is the merge patch from one status to the other.
func statusPatch(from, to any, uid types.UID, version string) ([]byte, error) {
	a, err := jsontree.Of(from)
	if err != nil {
		return nil, err
	}
	b, err := jsontree.Of(to)
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": uid, "resourceVersion": version},
		"status":   difference(a, b),
	})
}

// difference is the merge patch from a to b: what b has not is null, and a list
// is replaced as a whole.
func difference(a, b map[string]any) map[string]any {
	out := map[string]any{}
	for k := range a {
		if _, ok := b[k]; !ok {
			out[k] = nil
		}
	}
	for k, to := range b {
		from, ok := a[k]
		x, isMap := from.(map[string]any)
		y, isMapToo := to.(map[string]any)
		switch {
		case isMap && isMapToo:
			if d := difference(x, y); len(d) > 0 {
				out[k] = d
			}
		case !ok || !reflect.DeepEqual(from, to):
			out[k] = to
		}
	}
	return out
}
