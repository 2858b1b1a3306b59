package admission

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func TestWhatHasNoEffectIsAWarning(t *testing.T) {
	t.Parallel()
	seed := func(s *vmi.VirtualMachineInstanceSpec) {
		s.Volumes = append(s.Volumes, vmi.Volume{Name: "seed", VolumeSource: vmi.VolumeSource{CloudInitNoCloud: &vmi.CloudInitNoCloud{UserData: "hostname: a"}}})
		s.Domain.Devices.Disks = append(s.Domain.Devices.Disks, vmi.Disk{Name: "seed", Disk: &vmi.DiskTarget{Bus: "virtio"}})
	}
	instance := func(change ...func(*vmi.VirtualMachineInstance)) vmi.Object {
		v := vmitest.New(vmitest.WithContainerDisk("root", "example/fedora:40"))
		seed(&v.Spec)
		for _, c := range change {
			c(v)
		}
		return v
	}
	vm := vmitest.NewVM(vmi.RunAlways, vmitest.WithContainerDisk("root", "example/fedora:40"))
	seed(&vm.Spec.Template.Spec)
	const ignored = "cloudInitNoCloud.userData: cloud-init ignores what does not begin with #cloud-config or #! in its first line"
	gates := &vmi.KubeVirt{Spec: vmi.KubeVirtSpec{Configuration: vmi.KubeVirtConfiguration{DeveloperConfiguration: &vmi.DeveloperConfiguration{FeatureGates: []string{"hostdisk"}}}}}
	many := &vmi.KubeVirt{Spec: vmi.KubeVirtSpec{Configuration: vmi.KubeVirtConfiguration{DeveloperConfiguration: &vmi.DeveloperConfiguration{FeatureGates: strings.Split("abcdefghijklm", "")}}}}
	for name, tt := range map[string]struct {
		kind        schema.GroupVersionKind
		object      vmi.Object
		subresource string
		want        []string
	}{
		"a VMI":      {vmi.VirtualMachineInstances.GroupVersionKind, instance(), "", []string{"spec.volumes[1]." + ignored}},
		"a VM":       {vmi.VirtualMachines.GroupVersionKind, vm, "", []string{"spec.template.spec.volumes[1]." + ignored}},
		"its status": {vmi.VirtualMachines.GroupVersionKind, vm, "status", nil},
		"a VMI that a VM has made": {vmi.VirtualMachineInstances.GroupVersionKind, instance(func(v *vmi.VirtualMachineInstance) {
			v.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(vm, vmi.VirtualMachines.GroupVersionKind)}
		}), "", nil},
		"a VMI without cloud-init": {vmi.VirtualMachineInstances.GroupVersionKind, vmitest.New(vmitest.WithContainerDisk("root", "example/fedora:40")), "", nil},
		"a feature gate":           {vmi.KubeVirts.GroupVersionKind, gates, "", []string{`spec.configuration.developerConfiguration.featureGates[0]: "hostdisk" has no effect: write HostDisk`}},
		"many":                     {vmi.KubeVirts.GroupVersionKind, many, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw, err := json.Marshal(tt.object)
			require.NoError(t, err)
			r := post(t, Webhooks{}, ValidationPath, &admissionv1.AdmissionReview{Request: &admissionv1.AdmissionRequest{
				UID: "1", Kind: metav1.GroupVersionKind(tt.kind), SubResource: tt.subresource, Object: runtime.RawExtension{Raw: raw},
			}})
			require.True(t, r.Allowed, "%v", r.Result)
			if name == "many" {
				require.Len(t, r.Warnings, mostWarnings+1)
				require.Equal(t, "3 more", r.Warnings[mostWarnings])
				return
			}
			require.Equal(t, tt.want, r.Warnings)
		})
	}
}
