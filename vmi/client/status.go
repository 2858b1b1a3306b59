package client

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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
	return o.Patch(ctx, old.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}, "status")
}

// status is the status of the object, or nil if it has none.
func status(o vmi.Object) any {
	if s := reflect.Indirect(reflect.ValueOf(o)).FieldByName("Status"); s.IsValid() {
		return s.Interface()
	}
	return nil
}

// statusPatch is the merge patch from one status to the other.
func statusPatch(from, to any, uid types.UID, version string) ([]byte, error) {
	a, err := encoded(from)
	if err != nil {
		return nil, err
	}
	b, err := encoded(to)
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": uid, "resourceVersion": version},
		"status":   difference(a, b),
	})
}

// encoded is v as JSON has it.
func encoded(v any) (map[string]any, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	return out, json.Unmarshal(raw, &out)
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
