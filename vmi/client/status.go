package client

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

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
	return merge(ctx, o, changed, patch, "status")
}

// ReplaceStatus is WriteStatus for an object whose status is known as a whole. It sends all of
// the status that changed has while the client may do so ([Client.ReplaceStatuses]): what
// old lacks of the status that is stored is lost. An API server spends about half as long on
// that as on a patch, for which it encodes the whole object and decodes it again.
func ReplaceStatus[T vmi.Object](ctx context.Context, o Patched[T], old, changed T) (T, error) {
	from, to := status(old), status(changed)
	whole, ok := o.(replacer)
	if from == nil || to == nil || !ok || !whole.replaces() || !brief(changed) || equality.Semantic.DeepEqual(from, to) {
		return WriteStatus(ctx, o, old, changed)
	}
	now, err := with(changed)(whole.replaceStatus(ctx, old, to))
	if apierrors.IsForbidden(err) { // a role of one's own may permit patches alone
		return WriteStatus(ctx, o, old, changed)
	}
	return now, err
}

// replacer writes the status of an object as a whole, and returns the metadata of the
// object then.
type replacer interface {
	replaces() bool
	replaceStatus(ctx context.Context, old metav1.Object, status any) (metav1.ObjectMeta, error)
}

// WriteMetadata merges parts into the metadata of the object old, by one merge patch: a nil
// value removes what it is of. The patch carries old's UID and resourceVersion, so it fails
// with a conflict if the object was written in between. What old is otherwise has to be
// what is stored: the object is returned with it, and with the metadata as it is stored
// now, as [WriteStatus] does.
func WriteMetadata[T vmi.Object](ctx context.Context, o Patched[T], old T, parts map[string]any) (T, error) {
	all := maps.Clone(parts)
	if all == nil {
		all = map[string]any{}
	}
	all["uid"], all["resourceVersion"] = old.GetUID(), old.GetResourceVersion()
	patch, err := json.Marshal(map[string]any{"metadata": all})
	if err != nil {
		return none[T](), fmt.Errorf("write the metadata of %s/%s: %w", old.GetNamespace(), old.GetName(), err)
	}
	return merge(ctx, o, old, patch)
}

// merge sends a merge patch by which the object is like this one but for its metadata,
// and returns it as it is stored then.
func merge[T vmi.Object](ctx context.Context, o Patched[T], like T, patch []byte, subresources ...string) (T, error) {
	short, ok := o.(interface {
		patchBriefly(ctx context.Context, name string, patch []byte, subresources ...string) (metav1.ObjectMeta, error)
	})
	if !ok || !brief(like) {
		return o.Patch(ctx, like.GetName(), types.MergePatchType, patch, unchecked, subresources...)
	}
	return with(like)(short.patchBriefly(ctx, like.GetName(), patch, subresources...))
}

// brief says that the metadata of the answer are enough. Of an object that cannot be decoded
// whole, the answer says why.
func brief(o vmi.Object) bool { return metadataOf(o).IsValid() && vmi.Unreadable(o) == nil }

// with returns the object with other metadata.
func with[T vmi.Object](o T) func(metav1.ObjectMeta, error) (T, error) {
	return func(m metav1.ObjectMeta, err error) (T, error) {
		if err != nil {
			return none[T](), err
		}
		now := o.DeepCopyObject().(T)
		metadataOf(now).Set(reflect.ValueOf(m))
		return now, nil
	}
}

// metadataOf is the field with the metadata of the object. It is not valid if there is none.
func metadataOf(o vmi.Object) reflect.Value {
	f := reflect.Indirect(reflect.ValueOf(o)).FieldByName("ObjectMeta")
	if !f.IsValid() || f.Type() != reflect.TypeFor[metav1.ObjectMeta]() {
		return reflect.Value{}
	}
	return f
}

// unchecked has the server not look for fields that it does not know, and for fields that are
// named twice. It looks for them in the whole object, not only in the patch, and the patch is
// made from types.
var unchecked = metav1.PatchOptions{FieldValidation: metav1.FieldValidationIgnore}

// briefly are the answers that are asked for of which the metadata alone is needed. A server
// that has no such answer sends the object.
const briefly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

// patchBriefly sends a merge patch, and decodes only the metadata of the answer.
func (c Objects[T, L]) patchBriefly(ctx context.Context, name string, patch []byte, subresources ...string) (metav1.ObjectMeta, error) {
	return metadata(ctx, c.one(c.rest.Patch(types.MergePatchType), &unchecked, name, subresources...).Body(patch))
}

func (c Objects[T, L]) replaces() bool {
	may := c.replace.Load()
	return may != nil && (*may)()
}

// replaceStatus sends nothing but the status: the server leaves all else as it is.
func (c Objects[T, L]) replaceStatus(ctx context.Context, old metav1.Object, status any) (metav1.ObjectMeta, error) {
	body, err := json.Marshal(map[string]any{
		"apiVersion": c.definition.GroupVersion().String(),
		"kind":       c.definition.Kind,
		"metadata":   map[string]any{"name": old.GetName(), "uid": old.GetUID(), "resourceVersion": old.GetResourceVersion()},
		"status":     status,
	})
	if err != nil {
		return metav1.ObjectMeta{}, err
	}
	opts := metav1.UpdateOptions{FieldValidation: unchecked.FieldValidation}
	return metadata(ctx, c.one(c.rest.Put(), &opts, old.GetName(), "status").SetHeader("Content-Type", runtime.ContentTypeJSON).Body(body))
}

// metadata sends the request and decodes only the metadata of the answer.
func metadata(ctx context.Context, r *rest.Request) (metav1.ObjectMeta, error) {
	answer := r.SetHeader("Accept", briefly).Do(ctx)
	if err := answer.Error(); err != nil {
		return metav1.ObjectMeta{}, err
	}
	raw, err := answer.Raw()
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
