package admission

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// BenchmarkReview is what the webhooks take for one creation of a usual VMI, without the
// connection.
func BenchmarkReview(b *testing.B) {
	v := vmitest.New(vmitest.WithName("vm"), vmitest.WithMemory("64Mi"), vmitest.WithMasquerade("default"), vmitest.WithContainerDisk("root", "podvisor/demo-guest"), vmitest.WithCloudInit("data", "#cloud-config\n"))
	v.APIVersion, v.Kind, v.Namespace, v.UID = "kubevirt.io/v1", "VirtualMachineInstance", "ns", "86e4cb07-d249-498c-8e5e-4e63a0ea4491"
	// As the API server notes it of a client that creates.
	v.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: "kubectl-create", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: v.APIVersion, FieldsType: "FieldsV1", Time: new(metav1.Unix(1<<30, 0)),
		FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{".":{},"f:domain":{".":{},"f:devices":{".":{},"f:autoattachPodInterface":{},"f:disks":{},"f:interfaces":{}},"f:memory":{".":{},"f:guest":{}},"f:resources":{}},"f:networks":{},"f:volumes":{}}}`)},
	}}
	object, err := json.Marshal(v)
	require.NoError(b, err)
	done := patched(b, string(object), ask(b, DefaultsPath, string(object), ""))
	require.True(b, ask(b, ValidationPath, done, "").Allowed)
	for name, review := range map[string]struct {
		path, object string
		handler      http.Handler
	}{
		"defaults":   {DefaultsPath, string(object), Webhooks{}},
		"validation": {ValidationPath, done, Webhooks{}},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				askOf(b, review.handler, review.path, review.object, "")
			}
		})
	}
}

// BenchmarkPodReview is what the webhook takes for the pod of a usual VMI, that the process
// creates and that it has to render.
func BenchmarkPodReview(b *testing.B) {
	v := vmitest.New(vmitest.WithName("vm"), vmitest.WithMemory("64Mi"), vmitest.WithMasquerade("default"), vmitest.WithContainerDisk("root", "podvisor/demo-guest"), vmitest.WithCloudInit("data", "#cloud-config\n"))
	config := pod.Config{Launcher: pod.Launcher{Image: "podvisor/virt-launcher", Build: "mine"}}
	p, err := pod.Render(v, config)
	require.NoError(b, err)
	raw, err := json.Marshal(p)
	require.NoError(b, err)
	req := &admissionv1.AdmissionRequest{
		Operation: admissionv1.Create, Name: p.Name, Namespace: p.Namespace, Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}, Object: runtime.RawExtension{Raw: raw},
	}
	rendering := func(string) (pod.Config, bool) { return config, true }
	for name, l := range map[string]Launchers{
		"created":  {Rendering: rendering, Creating: func(string, string, string, types.UID) *corev1.Pod { return p }},
		"rendered": {Rendering: rendering, Cached: func(string, string) (*vmi.VirtualMachineInstance, pod.Facts) { return v, pod.Facts{} }},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				why, err := Owned{Launchers: l}.podRefusal(b.Context(), req)
				require.NoError(b, err)
				require.Empty(b, why)
			}
		})
	}
}
