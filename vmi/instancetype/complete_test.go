package instancetype_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/instancetype"
)

func TestAPreferenceDecidesForAllStarts(t *testing.T) {
	t.Parallel()
	p := from[instancetype.VirtualMachinePreferenceSpec](t, `{preferredArchitecture: amd64, machine: {preferredMachineType: pc-q35-9.2}, volumes: {preferredStorageClassName: fast}}`)
	v := vm(t, `{domain: {devices: {}}}`, "")
	v.Spec.DataVolumeTemplates = []vmi.DataVolumeTemplate{
		*from[vmi.DataVolumeTemplate](t, `{spec: {pvc: {}}}`), *from[vmi.DataVolumeTemplate](t, `{spec: {storage: {}}}`), *from[vmi.DataVolumeTemplate](t, `{spec: {pvc: {storageClassName: ""}}}`),
	}
	before := v.DeepCopy()
	out := instancetype.Complete(v, p)
	require.Equal(t, before, v, "the input is not changed")
	require.Equal(t, "amd64", out.Spec.Template.Spec.Architecture)
	require.Equal(t, "pc-q35-9.2", out.Spec.Template.Spec.Domain.Machine.Type)
	require.Equal(t, "fast", *out.Spec.DataVolumeTemplates[0].Spec.PVC.StorageClassName)
	require.Equal(t, "fast", *out.Spec.DataVolumeTemplates[1].Spec.Storage.StorageClassName)
	require.Empty(t, *out.Spec.DataVolumeTemplates[2].Spec.PVC.StorageClassName, "no class is a class")
	require.Equal(t, out, instancetype.Complete(out, from[instancetype.VirtualMachinePreferenceSpec](t,
		`{preferredArchitecture: arm64, machine: {preferredMachineType: q35}, volumes: {preferredStorageClassName: slow}}`)), "what is decided stays")
	require.Equal(t, v, instancetype.Complete(v, nil))
	require.NotPanics(t, func() { instancetype.Complete(&vmi.VirtualMachine{}, p) })
}
