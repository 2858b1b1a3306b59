package instance_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/storage/volume"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// bridged has an interface with the binding bridge on the network.
func bridged(n vmi.NetworkSource) func(*vmi.VirtualMachineInstance) {
	return func(v *vmi.VirtualMachineInstance) {
		v.Spec.Networks = []vmi.Network{{Name: "net", NetworkSource: n}}
		v.Spec.Domain.Devices.Interfaces = []vmi.Interface{{Name: "net", InterfaceBinding: vmi.InterfaceBinding{Bridge: &vmi.InterfaceBridge{}}}}
	}
}

// holding has a volume, whose claim has the access modes.
func holding(s vmi.VolumeSource, modes ...corev1.PersistentVolumeAccessMode) func(*vmi.VirtualMachineInstance) {
	return func(v *vmi.VirtualMachineInstance) {
		v.Spec.Volumes = append(v.Spec.Volumes, vmi.Volume{Name: "data", VolumeSource: s})
		v.Status.VolumeStatus = []vmi.VolumeStatus{{Name: "data", PersistentVolumeClaimInfo: &vmi.PersistentVolumeClaimInfo{AccessModes: modes}}}
	}
}

func TestWhatAVMIIsMadeOfSaysWhetherItCanMove(t *testing.T) {
	t.Parallel()
	claim := corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}
	inClaim := vmi.VolumeSource{PersistentVolumeClaim: &vmi.PersistentVolumeClaimVolume{PersistentVolumeClaimVolumeSource: claim}}
	overClaim := vmi.VolumeSource{Ephemeral: &vmi.EphemeralVolume{PersistentVolumeClaim: &claim}}
	devices := func(change func(*vmi.Devices)) func(*vmi.VirtualMachineInstance) {
		return func(v *vmi.VirtualMachineInstance) { change(&v.Spec.Domain.Devices) }
	}
	for name, tt := range map[string]struct {
		change          func(*vmi.VirtualMachineInstance)
		reason, message string
		storage         bool // so do its volumes
	}{
		"what most VMIs have":         {change: func(*vmi.VirtualMachineInstance) {}},
		"a bridge on the pod network": {bridged(vmi.NetworkSource{Pod: &vmi.PodNetwork{}}), vmi.ReasonInterfaceNotLiveMigratable, "interface net: ", true},
		"a bridge on another network": {change: bridged(vmi.NetworkSource{Multus: &vmi.MultusNetwork{NetworkName: "lan"}})},
		"a device of the node":        {devices(func(d *vmi.Devices) { d.GPUs = []vmi.GPU{{Name: "g"}} }), vmi.ReasonHostDeviceNotLiveMigratable, "devices.hostDevices", true},
		"a function of a network card": {devices(func(d *vmi.Devices) {
			d.Interfaces[0].InterfaceBinding = vmi.InterfaceBinding{SRIOV: &vmi.InterfaceSRIOV{}}
		}), vmi.ReasonInterfaceNotLiveMigratable, "sriov", true},
		"a file system": {devices(func(d *vmi.Devices) { d.Filesystems = []vmi.Filesystem{{Name: "f"}} }), vmi.ReasonVirtIOFSNotLiveMigratable, "server", true},
		"encrypted memory": {func(v *vmi.VirtualMachineInstance) {
			v.Spec.Domain.LaunchSecurity = &vmi.LaunchSecurity{SEV: &vmi.SEV{}}
		}, vmi.ReasonSEVNotLiveMigratable, "encrypted", true},
		"all of Hyper-V": {func(v *vmi.VirtualMachineInstance) {
			v.Spec.Domain.Features = &vmi.Features{HypervPassthrough: &vmi.HypervPassthrough{}}
		}, vmi.ReasonHypervPassthroughNotLiveMigratable, "Hyper-V", true},
		"a disk of the node":               {holding(vmi.VolumeSource{HostDisk: &vmi.HostDisk{}}), vmi.ReasonDisksNotLiveMigratable, "volume data: what is of the kind hostDisk is on one node", false},
		"a claim of one node":              {holding(inClaim, corev1.ReadWriteOnce), vmi.ReasonDisksNotLiveMigratable, "volume data: the claim c has not", false},
		"a claim that is not known":        {holding(inClaim), vmi.ReasonDisksNotLiveMigratable, "are not known", false},
		"a TPM that is persistent":         {change: keeps},
		"a claim of several nodes":         {change: holding(inClaim, corev1.ReadWriteMany)},
		"a claim that is read by several":  {change: holding(overClaim, corev1.ReadOnlyMany)},
		"a written claim that is for read": {holding(inClaim, corev1.ReadOnlyMany), vmi.ReasonDisksNotLiveMigratable, "has not", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := vmitest.New(vmitest.WithContainerDisk("root", "image"), vmitest.WithMasquerade("default"))
			tt.change(v)
			live, storage := instance.Movable{}.LiveMigratable(v), instance.Movable{}.StorageLiveMigratable(v)
			require.Equal(t, vmi.ConditionLiveMigratable, live.Type)
			require.Equal(t, vmi.ConditionStorageLiveMigratable, storage.Type)
			require.Equal(t, tt.reason, live.Reason, live.Message)
			require.Contains(t, live.Message, tt.message)
			require.Equal(t, tt.reason == "", live.Status == corev1.ConditionTrue)
			require.Equal(t, tt.storage, storage.Status == corev1.ConditionFalse, storage.Message)
			if tt.storage {
				require.Equal(t, "NotMigratable", storage.Reason)
				require.Contains(t, storage.Message, tt.reason+": "+live.Message)
			}
		})
	}
}

func TestWhatAnEmbedderAddsSaysWhetherItCanMove(t *testing.T) {
	t.Parallel()
	v := vmitest.New(vmitest.WithContainerDisk("root", "image"), vmitest.WithMasquerade("default"))
	require.Equal(t, "mine", instance.Movable{Traits: []vmi.Trait{{Part: "x", Stays: "mine", Has: func(*vmi.VirtualMachineInstance) bool { return true }}}}.LiveMigratable(v).Reason)
	require.Equal(t, vmi.ReasonDisksNotLiveMigratable, instance.Movable{VolumeKinds: []volume.Kind{{Name: "containerDisk"}}}.LiveMigratable(v).Reason)
	require.Equal(t, vmi.ReasonInterfaceNotLiveMigratable, instance.Movable{Bindings: network.Bindings()[:1]}.LiveMigratable(v).Reason, "the first is bridge")
}
