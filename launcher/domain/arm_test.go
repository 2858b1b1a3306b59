package domain

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/vmi"
)

func TestAGuestOfARMReportsACrashByADeviceOnItsPCIBus(t *testing.T) {
	t.Parallel()
	for arch, want := range map[string]string{archARM: "pvpanic", archX86: ""} {
		v := instance(func(v *vmi.VirtualMachineInstance) { v.Spec.Domain.Devices.PanicDevices = []vmi.PanicDevice{{}} })
		d, err := Build(v, host(v, func(h *Host) { h.Arch = arch }))
		require.NoError(t, err)
		got := d.Devices.Panics[0]
		require.Equal(t, want, got.Model)
		require.Equal(t, arch == archARM, got.Address != nil, arch)
	}
}

func TestAProcessorWithADedicatedCPUOfARMHasNoHintOfX86(t *testing.T) {
	t.Parallel()
	for arch, want := range map[string]bool{archARM: false, archX86: true} {
		v := instance(func(v *vmi.VirtualMachineInstance) {
			v.Spec.Domain.CPU = &vmi.CPU{Cores: 1, DedicatedCPUPlacement: true}
		})
		d, err := Build(v, host(v, func(h *Host) { h.Arch, h.CPUs = arch, []HostCPU{{ID: 3}} }))
		require.NoError(t, err)
		require.Equal(t, want, d.Features.KVM != nil, arch)
		require.NotNil(t, d.CPUTune)
	}
}

func TestADomainIsForTheArchitectureOfItsVMI(t *testing.T) {
	t.Parallel()
	for goarch, want := range map[string]string{"amd64": "x86_64", "arm64": "aarch64", "s390x": "s390x", "": "x86_64"} {
		v := instance(architecture(goarch, ""))
		d, err := Build(v, host(v))
		require.NoError(t, err)
		require.Equal(t, want, d.OS.Type.Arch)
	}
}

func TestTheVariablesOfTheFirmwareAreBelowTheRootOfTheHost(t *testing.T) {
	t.Parallel()
	v := instance(uefi(vmi.EFI{SecureBoot: new(false)}))
	d, err := Build(v, host(v, func(h *Host) { h.Root = "/tmp/vm1" }))
	require.NoError(t, err)
	require.Equal(t, "/tmp/vm1/var/run/kubevirt-private/nvram/uefi.fd", d.OS.NVRam.NVRam)
}
