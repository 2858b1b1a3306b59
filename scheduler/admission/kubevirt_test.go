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
	object := runtime.RawExtension{Raw: []byte(`{"metadata":{"namespace":"b","name":"kubevirt"},"spec":{"configuration":{"cpuRequest":"200m"}}}`)}
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

func TestAConfigurationThatCannotBeUsedIsRefused(t *testing.T) {
	t.Parallel()
	raw := func(configuration string) runtime.RawExtension {
		if configuration == "" {
			return runtime.RawExtension{}
		}
		return runtime.RawExtension{Raw: []byte(`{"metadata":{"namespace":"a","name":"kubevirt"},"spec":{"configuration":` + configuration + `}}`)}
	}
	const negative = `{"developerConfiguration":{"logVerbosity":{"virtController":-1}}}`
	for name, tt := range map[string]struct {
		before, after string
		message       string // of the refusal; "": it is allowed
	}{
		"a new one that cannot be decoded":      {"", negative, "spec.configuration.developerConfiguration.logVerbosity.virtController: -1: must be a whole number"},
		"a change to one that cannot":           {`{}`, negative, "spec.configuration.developerConfiguration.logVerbosity.virtController: -1: must be a whole number"},
		"a new one with a fault":                {"", `{"cpuRequest":"-1"}`, "spec.configuration.cpuRequest"},
		"a change to one with a fault":          {`{"cpuRequest":"1"}`, `{"cpuRequest":"-1"}`, "spec.configuration.cpuRequest"},
		"a change of one with a fault":          {`{"cpuRequest":"-1"}`, `{"cpuRequest":"-2"}`, "spec.configuration.cpuRequest"},
		"a quantity that cannot be compared":    {`{}`, `{"cpuRequest":"1.5e999999999"}`, "spec.configuration.cpuRequest"},
		"a correction of one with a fault":      {`{"cpuRequest":"-1"}`, `{"cpuRequest":"1"}`, ""},
		"a correction of what was not decoded":  {negative, `{"cpuRequest":"1"}`, ""},
		"a wrong correction of such a one":      {negative, `{"cpuRequest":"-1"}`, "spec.configuration.cpuRequest"},
		"one broken configuration for another":  {negative, `{"cpuRequest":{}}`, "spec.configuration.cpuRequest"},
		"a new one without a fault":             {"", `{}`, ""},
		"a change of one to one without faults": {`{}`, `{"cpuRequest":"1"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			known := Webhooks{KubeVirts: func() []*vmi.KubeVirt {
				return []*vmi.KubeVirt{{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "kubevirt"}}}
			}}
			review := &admissionv1.AdmissionReview{Request: &admissionv1.AdmissionRequest{
				UID: "1", Name: "kubevirt", Namespace: "a", Kind: metav1.GroupVersionKind(vmi.KubeVirts.GroupVersionKind), Object: raw(tt.after), OldObject: raw(tt.before),
			}}
			r := post(t, known, ValidationPath, review)
			require.Equal(t, tt.message == "", r.Allowed, r)
			if tt.message != "" {
				require.Contains(t, r.Result.Message, tt.message)
			}
		})
	}
}

func TestEverythingIsAllowedWhileKubeVirtIsInstalled(t *testing.T) {
	t.Parallel()
	why := "it is there"
	all := allowWhile(func() string { return why }, Webhooks{}.Handlers())
	review := &admissionv1.AdmissionReview{Request: &admissionv1.AdmissionRequest{
		UID: "7", Kind: metav1.GroupVersionKind(vmi.VirtualMachineInstances.GroupVersionKind), Object: runtime.RawExtension{Raw: []byte(written(`{"domain":{}}`))},
	}}
	for _, path := range []string{DefaultsPath, ValidationPath} {
		require.Equal(t, &admissionv1.AdmissionResponse{UID: "7", Allowed: true}, post(t, all[path], path, review))
	}
	why = ""
	require.False(t, post(t, all[ValidationPath], ValidationPath, review).Allowed)
}
