package pod_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func TestOnlyAVMIThatNeedsTheFullImageHasIt(t *testing.T) {
	t.Parallel()
	uefi := func(v *vmi.VirtualMachineInstance) {
		v.Spec.Domain.Firmware = &vmi.Firmware{Bootloader: &vmi.Bootloader{EFI: &vmi.EFI{SecureBoot: new(false)}}}
	}
	tpm := func(v *vmi.VirtualMachineInstance) { v.Spec.Domain.Devices.TPM = &vmi.TPM{} }
	for name, tt := range map[string]struct {
		config pod.Config
		change func(*vmi.VirtualMachineInstance)
		want   string
	}{
		"nothing of it":               {pod.Config{Launcher: pod.Launcher{Image: "a/b:1", FullImage: "c"}}, func(*vmi.VirtualMachineInstance) {}, "a/b:1"},
		"a TPM that is disabled":      {pod.Config{Launcher: pod.Launcher{Image: "a/b:1"}}, func(v *vmi.VirtualMachineInstance) { v.Spec.Domain.Devices.TPM = &vmi.TPM{Enabled: new(false)} }, "a/b:1"},
		"UEFI":                        {pod.Config{Launcher: pod.Launcher{Image: "a/b:1"}}, uefi, "a/b-full:1"},
		"a TPM":                       {pod.Config{Launcher: pod.Launcher{Image: "a:5000/b"}}, tpm, "a:5000/b-full"},
		"a name of its own":           {pod.Config{Launcher: pod.Launcher{Image: "a/b:1", FullImage: "c@sha256:1"}}, tpm, "c@sha256:1"},
		"both named by their digests": {pod.Config{Launcher: pod.Launcher{Image: "a/b@sha256:1", FullImage: "a/b-full@sha256:2"}}, uefi, "a/b-full@sha256:2"},
		"a digest and nothing of it":  {pod.Config{Launcher: pod.Launcher{Image: "a/b@sha256:1"}}, func(*vmi.VirtualMachineInstance) {}, "a/b@sha256:1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := pod.Render(vmitest.New(with(tt.change)), tt.config)
			require.NoError(t, err)
			require.Equal(t, tt.want, p.Spec.Containers[0].Image)
		})
	}
}

func TestAVMIThatNeedsTheFullImageNeverHasTheSmallOne(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*vmi.VirtualMachineInstance){
		"UEFI": func(v *vmi.VirtualMachineInstance) {
			v.Spec.Domain.Firmware = &vmi.Firmware{Bootloader: &vmi.Bootloader{EFI: &vmi.EFI{SecureBoot: new(false)}}}
		},
		"a TPM": func(v *vmi.VirtualMachineInstance) { v.Spec.Domain.Devices.TPM = &vmi.TPM{} },
	} {
		for _, image := range []string{"a/b@sha256:1", "a/b:v1@sha256:1"} {
			t.Run(name+" with "+image, func(t *testing.T) {
				t.Parallel()
				_, err := pod.Render(vmitest.New(with(change)), pod.Config{Launcher: pod.Launcher{Image: image}})
				require.ErrorContains(t, err, "set LAUNCHER_FULL_IMAGE of virt-controller")
				require.NotErrorIs(t, err, vmi.ErrInvalid, "the installation is wrong, and not the VMI")
			})
		}
	}
}

func TestTheClaimForTheStateGoesWithTheVMOrTheVMI(t *testing.T) {
	t.Parallel()
	v := vmitest.New(vmitest.WithName("web"))
	c := pod.StateClaim(v, pod.Config{})
	require.Equal(t, "persistent-state-for-web", c.Name)
	require.Equal(t, []metav1.OwnerReference{{APIVersion: "kubevirt.io/v1", Kind: "VirtualMachineInstance", Name: "web", UID: v.UID}}, c.OwnerReferences)
	require.Nil(t, c.Spec.StorageClassName)

	v.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(&vmi.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "vm"}}, vmi.VirtualMachines.GroupVersionKind)}
	config := pod.Config{}
	config.Cluster.Pods.StateStorageClass = "fast"
	c = pod.StateClaim(v, config)
	require.Equal(t, []metav1.OwnerReference{{APIVersion: "kubevirt.io/v1", Kind: "VirtualMachine", Name: "web", UID: "vm"}}, c.OwnerReferences)
	require.Equal(t, "fast", *c.Spec.StorageClassName)

	v.Name = strings.Repeat("a", 253)
	require.Len(t, pod.StateClaim(v, config).Name, 253)
}
