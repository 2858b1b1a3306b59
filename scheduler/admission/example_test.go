package admission_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/podvisor/podvisor/scheduler/admission"
	"github.com/podvisor/podvisor/vmi"
)

func Example() {
	mux := http.NewServeMux()
	for path, h := range (admission.Webhooks{}).Handlers() {
		mux.Handle(path, h)
	}
	s := httptest.NewServer(mux) // in a cluster: over TLS, with Certificates
	defer s.Close()

	// What the API server sends when a user creates a VMI.
	body, _ := json.Marshal(admissionv1.AdmissionReview{Request: &admissionv1.AdmissionRequest{
		Kind:      metav1.GroupVersionKind(vmi.VirtualMachineInstances.GroupVersionKind),
		Name:      "vm",
		Operation: admissionv1.Create,
		Object:    runtime.RawExtension{Raw: []byte(`{"spec": {"domain": {"devices": {"disks": [{"name": "root"}]}}}}`)},
	}})
	resp, err := http.Post(s.URL+admission.ValidationPath, "application/json", bytes.NewReader(body))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = resp.Body.Close() }()
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(resp.Body).Decode(&review); err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range review.Response.Result.Details.Causes {
		fmt.Printf("%s %q\n", c.Type, c.Field)
	}
	// Output:
	// FieldValueInvalid "spec.domain.devices.disks[0].name"
	// FieldValueRequired "spec.domain.memory.guest"
}
