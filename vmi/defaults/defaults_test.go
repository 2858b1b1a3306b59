package defaults_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func Example() {
	v := defaults.Apply(&vmi.VirtualMachineInstance{}, defaults.Profile{})
	fmt.Println(v.Spec.Domain.Devices.Interfaces[0].Name, *v.Spec.TerminationGracePeriodSeconds)
	// Output: default 30
}

func TestApplyDecidesWhatIsLeftOpen(t *testing.T) {
	for name, tt := range map[string]struct {
		in    *vmi.VirtualMachineInstance
		check func(t *testing.T, s vmi.VirtualMachineInstanceSpec)
	}{
		"a machine without interfaces gets one on the pod network": {
			&vmi.VirtualMachineInstance{},
			func(t *testing.T, s vmi.VirtualMachineInstanceSpec) {
				require.Equal(t, []vmi.Interface{{Name: "default", Model: "virtio", InterfaceBinding: vmi.InterfaceBinding{Bridge: &vmi.InterfaceBridge{}}}}, s.Domain.Devices.Interfaces)
				require.Equal(t, []vmi.Network{{Name: "default", NetworkSource: vmi.NetworkSource{Pod: &vmi.PodNetwork{}}}}, s.Networks)
			},
		},
		"a machine that wants no interface gets none": {
			vmitest.New(),
			func(t *testing.T, s vmi.VirtualMachineInstanceSpec) {
				require.Empty(t, s.Domain.Devices.Interfaces)
				require.Empty(t, s.Networks)
			},
		},
		"a port is a TCP port": {
			vmitest.New(vmitest.WithMasquerade("a", vmi.Port{Port: 80})),
			func(t *testing.T, s vmi.VirtualMachineInstanceSpec) {
				require.Equal(t, "TCP", s.Domain.Devices.Interfaces[0].Ports[0].Protocol)
			},
		},
		"a volume without a disk gets one on the SATA bus": {
			&vmi.VirtualMachineInstance{Spec: vmi.VirtualMachineInstanceSpec{Volumes: []vmi.Volume{{Name: "a"}}}},
			func(t *testing.T, s vmi.VirtualMachineInstanceSpec) {
				require.Equal(t, []vmi.Disk{{Name: "a", Disk: &vmi.DiskTarget{Bus: vmi.DiskBusSATA}}}, s.Domain.Devices.Disks)
			},
		},
		"a bus that is named stays": {
			vmitest.New(vmitest.WithEmptyDisk("a", "1Gi")),
			func(t *testing.T, s vmi.VirtualMachineInstanceSpec) {
				require.Equal(t, vmi.DiskBusVirtio, s.Domain.Devices.Disks[0].Disk.Bus)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tt.check(t, defaults.Apply(tt.in, defaults.Profile{}).Spec)
		})
	}
}

func TestImagesAreAlwaysPulledIfTheirReferenceMayChangeItsMeaning(t *testing.T) {
	for image, want := range map[string]corev1.PullPolicy{
		"disk":                     corev1.PullAlways,
		"disk:latest":              corev1.PullAlways,
		"disk:1":                   corev1.PullIfNotPresent,
		"host:5000/disk":           corev1.PullAlways,
		"host:5000/disk:1":         corev1.PullIfNotPresent,
		"disk@sha256:0123":         corev1.PullIfNotPresent,
		"host:5000/disk@sha256:01": corev1.PullIfNotPresent,
	} {
		v := defaults.Apply(vmitest.New(vmitest.WithContainerDisk("a", image)), defaults.Profile{})
		require.Equal(t, want, v.Spec.Volumes[0].ContainerDisk.ImagePullPolicy, image)
	}
}

func TestApplyChangesNeitherItsInputNorItsOwnResult(t *testing.T) {
	in := vmitest.New(vmitest.WithContainerDisk("a", "disk"), vmitest.WithMasquerade("b", vmi.Port{Port: 80}))
	in.Spec.Domain.Devices.Disks = nil
	before := in.DeepCopy()
	once := defaults.Apply(in, defaults.Profile{})
	require.Equal(t, before, in)
	require.Equal(t, once, defaults.Apply(once, defaults.Profile{}))
}
