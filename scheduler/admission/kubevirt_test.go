package admission

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/podvisor/podvisor/vmi"
)

func TestASecondKubeVirtIsRefused(t *testing.T) {
	t.Parallel()
	first := &vmi.KubeVirt{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "kubevirt"}}
	object := runtime.RawExtension{Raw: []byte(`{"metadata":{"namespace":"b","name":"kubevirt"},"spec":{"configuration":{"cpuRequest":"-1"}}}`)}
	known := func() []*vmi.KubeVirt { return []*vmi.KubeVirt{first} }
	for name, tt := range map[string]struct {
		webhooks Webhooks
		before   runtime.RawExtension
		refused  bool
	}{
		"beside one in another namespace": {webhooks: Webhooks{KubeVirts: known}, refused: true},
		"but not changed":                 {webhooks: Webhooks{KubeVirts: known}, before: object},
		"and not while nothing is known":  {webhooks: Webhooks{KubeVirts: func() []*vmi.KubeVirt { return nil }}},
		"not by a caller without a list":  {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			review := &admissionv1.AdmissionReview{Request: &admissionv1.AdmissionRequest{
				UID: "1", Name: "kubevirt", Namespace: "b", Kind: metav1.GroupVersionKind(vmi.KubeVirts.GroupVersionKind), Object: object, OldObject: tt.before,
			}}
			require.Equal(t, &admissionv1.AdmissionResponse{UID: "1", Allowed: true}, post(t, tt.webhooks, DefaultsPath, review))
			r := post(t, tt.webhooks, ValidationPath, review)
			require.Equal(t, !tt.refused, r.Allowed)
			if tt.refused {
				require.EqualValues(t, http.StatusUnprocessableEntity, r.Result.Code)
				require.Contains(t, r.Result.Message, "a/kubevirt is there already: change that one, or delete it first")
			}
		})
	}
}

func TestEverythingIsAllowedWhileKubeVirtIsInstalled(t *testing.T) {
	t.Parallel()
	why := "it is there"
	all := AllowWhile(func() string { return why }, Webhooks{}.Handlers())
	review := &admissionv1.AdmissionReview{Request: &admissionv1.AdmissionRequest{
		UID: "7", Kind: metav1.GroupVersionKind(vmi.Kind), Object: runtime.RawExtension{Raw: []byte(written(`{"domain":{}}`))},
	}}
	for _, path := range []string{DefaultsPath, ValidationPath} {
		require.Equal(t, &admissionv1.AdmissionResponse{UID: "7", Allowed: true}, post(t, all[path], path, review))
	}
	why = ""
	require.False(t, post(t, all[ValidationPath], ValidationPath, review).Allowed)
}
