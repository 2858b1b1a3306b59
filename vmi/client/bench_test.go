package client_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// answering answers every request with this body.
type answering []byte

func (a answering) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(a))}, nil
}

// BenchmarkAnswer is what the client takes for requests about a usual VMI, without the
// connection.
func BenchmarkAnswer(b *testing.B) {
	v := vmitest.New(vmitest.WithName("vm"), vmitest.WithMemory("64Mi"), vmitest.WithMasquerade("default"), vmitest.WithContainerDisk("root", "podvisor/demo-guest"), vmitest.WithCloudInit("data", "#cloud-config\n"))
	v.APIVersion, v.Kind, v.Namespace, v.UID = "kubevirt.io/v1", "VirtualMachineInstance", "ns", "86e4cb07-d249-498c-8e5e-4e63a0ea4491"
	v.ResourceVersion = "7"
	for _, manager := range []string{"kubectl-create", "virt-controller", "virt-handler"} {
		v.ManagedFields = append(v.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: v.APIVersion, FieldsType: "FieldsV1", Time: new(metav1.Unix(1<<30, 0)),
			FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{".":{},"f:domain":{".":{},"f:devices":{".":{},"f:autoattachPodInterface":{},"f:disks":{},"f:interfaces":{}},"f:memory":{".":{},"f:guest":{}},"f:resources":{}},"f:networks":{},"f:volumes":{}}}`)},
		})
	}
	text, err := json.Marshal(v)
	require.NoError(b, err)
	var tree any
	require.NoError(b, json.Unmarshal(text, &tree))
	text, err = json.Marshal(tree) // with its keys in the order of an API server
	require.NoError(b, err)
	c, err := client.New(&rest.Config{Host: "http://127.0.0.1", Transport: answering(text), QPS: -1})
	require.NoError(b, err)
	instances := c.VirtualMachineInstances("ns")
	b.Run("get", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, err := instances.Get(b.Context(), "vm", metav1.GetOptions{})
			require.NoError(b, err)
		}
	})
	b.Run("status", func(b *testing.B) {
		changed := v.DeepCopy()
		changed.Status.Phase = vmi.PhaseRunning
		changed.Status.Conditions = append(changed.Status.Conditions, vmi.Condition{Type: vmi.ConditionReady, Status: corev1.ConditionTrue})
		b.ReportAllocs()
		for b.Loop() {
			_, err := client.WriteStatus(b.Context(), instances, v, changed)
			require.NoError(b, err)
		}
	})
}
