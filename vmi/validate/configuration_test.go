package validate_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/validate"
)

func TestAClustersConfigurationDecidesAndLimits(t *testing.T) {
	c := read[vmi.KubeVirtConfiguration](t, `
cpuModel: Haswell
machineType: pc-q35-8
emulatedMachines: [pc-q35-8]
imagePullPolicy: Never
evictionStrategy: LiveMigrate
architectureConfiguration: {defaultArchitecture: arm64, arm64: {machineType: virt-9, emulatedMachines: [virt-9]}}
network: {defaultNetworkInterface: masquerade, permitBridgeInterfaceOnPodNetwork: false}
vmRolloutStrategy: Stage
liveUpdateConfiguration: {maxHotplugRatio: 8, maxCpuSockets: 16}
`)
	require.Equal(t, defaults.Profile{
		Architecture: "arm64", MachineTypes: map[string]string{"amd64": "pc-q35-8", "arm64": "virt-9"}, CPUModel: "Haswell",
		EvictionStrategy: vmi.EvictionLiveMigrate, Binding: defaults.Masquerade, NoLiveUpdate: true, HotplugRatio: 8, MaxSockets: 16,
	}, defaults.Configured(c))
	require.Equal(t, validate.Limits{
		Architecture: "arm64", MachineTypes: map[string][]string{"amd64": {"pc-q35-8"}, "arm64": {"virt-9"}}, NoBridgeOnPodNetwork: true, NoLiveUpdate: true,
	}, validate.Configured(c))
}

func TestFeatureGatesGoByKubeVirtsNames(t *testing.T) {
	f, unknown := validate.FeatureGates("HostDisk", "LiveMigration")
	require.Equal(t, validate.Features{HostDisk: true}, f)
	require.Equal(t, []string{"LiveMigration"}, unknown)
}

func TestAnErrorHasAllFaults(t *testing.T) {
	require.NoError(t, validate.Error(nil))
	err := validate.Error(validate.Migration(&vmi.VirtualMachineInstanceMigration{}, validate.User{}))
	require.ErrorIs(t, err, vmi.ErrInvalid)
	require.EqualError(t, err, "invalid: spec.vmiName: Required value: name the machine that shall move")
}
