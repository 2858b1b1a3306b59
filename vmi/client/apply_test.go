package client_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/kinds"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func TestOnlyWhatIsSetIsApplied(t *testing.T) {
	off, size := false, resource.MustParse("1Gi")
	for name, tt := range map[string]struct {
		set  func(*vmi.VirtualMachineInstance)
		want string
	}{
		"nothing": {func(*vmi.VirtualMachineInstance) {}, `{}`},
		"what only the API server and Podvisor write is left out": {func(v *vmi.VirtualMachineInstance) {
			v.CreationTimestamp, v.Generation = metav1.Now(), 3
			v.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "a"}}
			v.Status.Phase = vmi.PhaseRunning
		}, `{}`},
		"labels and the version that must not have changed": {func(v *vmi.VirtualMachineInstance) {
			v.Labels, v.Annotations, v.ResourceVersion = map[string]string{"a": ""}, map[string]string{}, "7"
		}, `{"metadata": {"name": "vm", "labels": {"a": ""}, "resourceVersion": "7"}}`},
		"a pointer to false": {func(v *vmi.VirtualMachineInstance) {
			v.Spec.Domain.Devices.AutoattachPodInterface = &off
		}, `{"spec": {"domain": {"devices": {"autoattachPodInterface": false}}}}`},
		"a pointer to a struct without fields": {func(v *vmi.VirtualMachineInstance) {
			v.Spec.Networks = []vmi.Network{{Name: "n", NetworkSource: vmi.NetworkSource{Pod: &vmi.PodNetwork{}}}}
		}, `{"spec": {"networks": [{"name": "n", "pod": {}}]}}`},
		"a quantity, and what the empty one beside it is not": {func(v *vmi.VirtualMachineInstance) {
			v.Spec.Domain.Memory = &vmi.Memory{Guest: &size}
			v.Spec.Volumes = []vmi.Volume{{Name: "e", VolumeSource: vmi.VolumeSource{EmptyDisk: &vmi.EmptyDisk{}}}}
		}, `{"spec": {"domain": {"memory": {"guest": "1Gi"}}, "volumes": [{"name": "e", "emptyDisk": {}}]}}`},
		"an empty list": {func(v *vmi.VirtualMachineInstance) {
			v.Spec.Tolerations = []corev1.Toleration{}
		}, `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			v := &vmi.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Name: "vm"}}
			tt.set(v)
			got, err := client.Configuration(vmi.VirtualMachineInstances, v)
			require.NoError(t, err)
			want := map[string]any{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": map[string]any{"name": "vm"}}
			require.NoError(t, json.Unmarshal([]byte(tt.want), &want))
			text, err := json.Marshal(want)
			require.NoError(t, err)
			require.JSONEq(t, string(text), string(got))
		})
	}
}

func TestTheConfigurationOfEveryKindSaysItsKind(t *testing.T) {
	for _, d := range kinds.Definitions() {
		o := d.New()
		o.SetName("a")
		got, err := client.Configuration(d.Untyped(), o)
		require.NoError(t, err)
		require.JSONEq(t, `{"apiVersion": "`+d.GroupVersion().String()+`", "kind": "`+d.Kind+`", "metadata": {"name": "a"}}`, string(got))
	}
}

func TestAnObjectWithoutANameIsNotApplied(t *testing.T) {
	_, err := client.Configuration(vmi.VirtualMachines, &vmi.VirtualMachine{})
	require.EqualError(t, err, "apply VirtualMachine: the object has no name")
	_, err = client.Configuration(vmi.VirtualMachines, nil)
	require.EqualError(t, err, "apply VirtualMachine: the object has no name")
}

func TestWhatAnObjectHoldsIsAppliedWhole(t *testing.T) {
	v := vmitest.New(vmitest.WithContainerDisk("root", "example/web:1"), vmitest.WithMasquerade("net", vmi.Port{Port: 80}), vmitest.WithCores(2))
	got, err := client.Configuration(vmi.VirtualMachineInstances, v)
	require.NoError(t, err)
	var back vmi.VirtualMachineInstance
	require.NoError(t, json.Unmarshal(got, &back))
	require.Equal(t, v.Spec, back.Spec)
}
