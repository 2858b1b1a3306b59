package authority_test

import (
	"encoding/base64"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"

	"github.com/podvisor/podvisor/internal/certificate"
	"github.com/podvisor/podvisor/internal/scheduler/authority"
)

func apiService(name, service string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": name},
		"spec":     map[string]any{"service": map[string]any{"namespace": "kubevirt", "name": service, "port": int64(443)}},
	}}
}

func TestTheAuthorityIsWrittenIntoOurAPIServicesAndCorrected(t *testing.T) {
	t.Parallel()
	ours, other := certificate.APIServices()[0], certificate.APIServices()[1]
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{certificate.APIServiceResource: "APIServiceList"},
		apiService(ours, "virt-controller"), apiService(other, "another"))
	registrations := client.Resource(certificate.APIServiceResource)
	bundle := func(name string) string {
		s, err := registrations.Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		is, _, err := unstructured.NestedString(s.Object, "spec", "caBundle")
		require.NoError(t, err)
		return is
	}
	w := newWorld(t)
	w.run(func(c *authority.Config) { c.Dynamic = client })
	isWritten := func() error {
		if is := bundle(ours); is == "" || is != base64.StdEncoding.EncodeToString(w.secret(certificate.AuthoritySecret).Data["ca.crt"]) {
			return errors.New("the authority is not written yet")
		}
		return nil
	}
	w.eventually(isWritten)
	changed := apiService(ours, "virt-controller")
	require.NoError(t, unstructured.SetNestedField(changed.Object, "dGhpZWY=", "spec", "caBundle"))
	_, err := registrations.Update(t.Context(), changed, metav1.UpdateOptions{})
	require.NoError(t, err)
	w.eventually(isWritten)
	require.Empty(t, bundle(other))
}
