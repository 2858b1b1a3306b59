package admission

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/kinds"
)

func TestAllWordsOfBeforeV1AreNamedAtOnce(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		kind, spec string
		want       []string
	}{
		"a VMI": {"VirtualMachineInstance",
			`{"domain": {"memory": {"guest": "64Mi"}, "devices": {"disks": [{"name": "a", "volumeName": "a"}]}}, "volumes": [{"name": "a", "registryDisk": {"image": "x"}}]}`,
			[]string{"spec.domain.devices.disks[0].volumeName: Forbidden: leave it out, and give the disk the name of its volume", "spec.volumes[0].registryDisk: Forbidden: write containerDisk"}},
		"a VM that is a VMI": {"VirtualMachine", `{"domain": {}, "volumes": [{"name": "a", "registryDisk": {"image": "x"}}]}`,
			[]string{"spec.domain: Forbidden: write spec.template.spec.domain, or kind: VirtualMachineInstance for a guest that runs once",
				"spec.volumes: Forbidden: write spec.template.spec.volumes", "spec.volumes[0].registryDisk: Forbidden: write containerDisk"}},
		"a set": {"VirtualMachineInstanceReplicaSet", `{"template": {"spec": {"volumes": [{"name": "a", "registryDisk": {}}]}}}`,
			[]string{"spec.template.spec.volumes[0].registryDisk: Forbidden: write containerDisk"}},
		"nothing of before": {"VirtualMachineInstance", `{"domain": {"memory": {"guest": "64Mi"}}}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gvk := vmi.GroupVersion.WithKind(tt.kind)
			k, ok := kinds.Find(gvk.GroupKind())
			require.True(t, ok)
			raw, err := json.Marshal(map[string]any{"apiVersion": "kubevirt.io/v1", "kind": tt.kind, "metadata": map[string]any{"name": "a"}, "spec": json.RawMessage(tt.spec)})
			require.NoError(t, err)
			r, err := answerDefaults(k, kinds.Cluster{}, &admissionv1.AdmissionRequest{Name: "a", Kind: metav1.GroupVersionKind(gvk), Object: runtime.RawExtension{Raw: raw}}, nil)
			require.NoError(t, err)
			require.Equal(t, len(tt.want) == 0, r.Allowed)
			for _, want := range tt.want {
				require.Contains(t, r.Result.Message, want)
			}
			if !r.Allowed {
				require.Len(t, r.Result.Details.Causes, len(tt.want))
			}
		})
	}
}
