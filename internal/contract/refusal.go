package contract

import (
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// refusal: what no write may say.
func (s suite) refusal(t *testing.T) {
	m := s.vm("refused")
	m.Finalizers = []string{"example.com/a"}
	m = s.created(t, m)
	patch := func(pt types.PatchType, data string) error {
		_, err := s.vms().Patch(t.Context(), m.Name, pt, []byte(data), metav1.PatchOptions{FieldManager: "test"})
		return err
	}
	update := func(change func(*metav1.ObjectMeta)) error {
		now, err := s.vms().Get(t.Context(), m.Name, metav1.GetOptions{})
		require.NoError(t, err)
		change(&now.ObjectMeta)
		_, err = s.vms().Update(t.Context(), now, metav1.UpdateOptions{})
		return err
	}
	for _, tt := range []struct {
		name string
		is   func(error) bool
		err  error
	}{
		{"an update of no version", apierrors.IsInvalid, update(func(m *metav1.ObjectMeta) { m.ResourceVersion = "" })},
		{"an update of another object", apierrors.IsConflict, update(func(m *metav1.ObjectMeta) { m.UID = "other" })},
		{"a patch that takes the version away", apierrors.IsInvalid, patch(types.MergePatchType, `{"metadata": {"resourceVersion": null}}`)},
		{"a patch of the UID", apierrors.IsInvalid, patch(types.MergePatchType, `{"metadata": {"uid": "other"}}`)},
		{"a patch of the name", apierrors.IsBadRequest, patch(types.MergePatchType, `{"metadata": {"name": "other"}}`)},
		{"a patch of the namespace", apierrors.IsBadRequest, patch(types.MergePatchType, `{"metadata": {"namespace": "other"}}`)},
		{"a patch whose test fails", apierrors.IsInvalid, patch(types.JSONPatchType, `[{"op": "test", "path": "/metadata/name", "value": "other"}]`)},
		{"a patch that removes what is not there", apierrors.IsInvalid, patch(types.JSONPatchType, `[{"op": "remove", "path": "/metadata/labels/none"}]`)},
		{"a patch that is no JSON", apierrors.IsBadRequest, patch(types.MergePatchType, `{`)},
		{"an applied configuration of another name", apierrors.IsBadRequest,
			patch(types.ApplyPatchType, `{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "other"}}`)},
	} {
		require.True(t, tt.is(tt.err), "%s: %v", tt.name, tt.err)
	}
	require.NoError(t, s.vms().Delete(t.Context(), m.Name, metav1.DeleteOptions{}))
	err := update(func(m *metav1.ObjectMeta) { m.Finalizers = append(m.Finalizers, "example.com/b") })
	require.True(t, apierrors.IsInvalid(err), "one more finalizer of what is deleted: %v", err)
	require.NoError(t, update(func(m *metav1.ObjectMeta) { m.Finalizers = nil }))
}
