package client

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

// WriteStatus makes the status of the object old what it is in changed, by one
// merge patch that holds only the difference. The patch carries old's
// resourceVersion, so it fails with a conflict if somebody else wrote in
// between. Nothing is written, and old is returned, if the two are equal.
func WriteStatus[T Object, L runtime.Object](ctx context.Context, o Objects[T, L], old, changed T) (T, error) {
	from, to := status(old), status(changed)
	if equality.Semantic.DeepEqual(from, to) {
		return old, nil
	}
	patch, err := statusPatch(from, to, old.GetUID(), old.GetResourceVersion())
	if err != nil {
		return nil, fmt.Errorf("compare the status of %s/%s: %w", old.GetNamespace(), old.GetName(), err)
	}
	return o.Patch(ctx, old.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}, "status")
}

// status is the status of the object, which every kind has.
func status[T Object](o T) any { return reflect.ValueOf(o).Elem().FieldByName("Status").Interface() }

// statusPatch is the merge patch from one status to the other.
func statusPatch(from, to any, uid types.UID, version string) ([]byte, error) {
	type object struct {
		Status any `json:"status"`
	}
	a, err := json.Marshal(object{from})
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(object{to})
	if err != nil {
		return nil, err
	}
	diff, err := jsonpatch.CreateMergePatch(a, b)
	if err != nil {
		return nil, err
	}
	var patch map[string]any
	if err := json.Unmarshal(diff, &patch); err != nil {
		return nil, err
	}
	patch["metadata"] = map[string]any{"uid": uid, "resourceVersion": version}
	return json.Marshal(patch)
}
