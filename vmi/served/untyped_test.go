package served

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/vmi"
)

func TestAFieldWithoutATypeHasAReason(t *testing.T) {
	t.Parallel()
	o := object(t, `{spec: {template: {spec: {domain: {devices: {clientPassthrough: {}, downwardMetrics: {}}}}}}}`)
	var got []string
	for _, f := range Untyped("VirtualMachine").In(o) {
		require.True(t, f.Refused)
		got = append(got, f.String())
	}
	require.Equal(t, []string{
		"spec.template.spec.domain.devices.clientPassthrough: not served: few VMs need it; it enters when it is built",
		"spec.template.spec.domain.devices.downwardMetrics: not served: metrics of the node for the guest enter when they are built",
	}, got)
	for kind, fields := range untyped {
		for _, f := range fields {
			require.NotEmpty(t, f.Path, kind)
			require.NotEmpty(t, f.Why, "%s: %s", kind, f.Path)
		}
	}
	require.Empty(t, Untyped("Pod"))
}

func TestAKindWithoutATypeHasAReason(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{
		"VirtualMachineInstancePreset",
		"VirtualMachineSnapshot", "VirtualMachineRestore", "VirtualMachineClone", "VirtualMachineExport", "VirtualMachineBackup",
	} {
		why, ok := UntypedKind(kind)
		require.True(t, ok, kind)
		require.NotEmpty(t, why, kind)
	}
	for _, d := range vmi.Definitions() {
		_, ok := UntypedKind(d.Kind)
		require.False(t, ok, d.Kind)
	}
}
