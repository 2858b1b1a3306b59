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

func TestTheMachineTypesOfAConfigurationFitTogether(t *testing.T) {
	const at, amd64 = "spec.configuration.", "spec.configuration.architectureConfiguration.amd64."
	for name, tt := range map[string]struct {
		in   string
		want []string
	}{
		"nothing":                       {`{}`, nil},
		"a type among the usual":        {`machineType: pc-q35-7.2`, nil},
		"a type and a pattern for it":   {`{machineType: pc-q35-7.2, emulatedMachines: ["pc-q35-[67].*"]}`, nil},
		"another place for the pattern": {`{machineType: pc, architectureConfiguration: {amd64: {emulatedMachines: [pc, q35]}}}`, nil},
		"the newer place counts":        {`{machineType: pc, architectureConfiguration: {amd64: {machineType: q35}}}`, nil},
		"patterns that are none":        {`{emulatedMachines: [q35, "pc-["], architectureConfiguration: {amd64: {emulatedMachines: ["", "q35*"]}}}`, []string{amd64 + "emulatedMachines[0]", at + "emulatedMachines[1]"}},
		"a type without a pattern":      {`machineType: pc`, []string{at + "machineType"}},
		"another in the newer place":    {`architectureConfiguration: {amd64: {machineType: virt}}`, []string{amd64 + "machineType"}},
		"a list without the usual type": {`architectureConfiguration: {amd64: {emulatedMachines: [pc-q35-7.2]}}`, []string{amd64 + "emulatedMachines"}},
		"an old one":                    {`emulatedMachines: [pc-q35-7.2]`, []string{at + "emulatedMachines"}},
		"each architecture has its own": {`architectureConfiguration: {amd64: {machineType: virt}, arm64: {machineType: virt}, s390x: {machineType: q35}}`, []string{amd64 + "machineType", at + "architectureConfiguration.s390x.machineType"}},
		"an architecture":               {`architectureConfiguration: {defaultArchitecture: sparc}`, []string{at + "architectureConfiguration.defaultArchitecture"}},
		"the node's own processor":      {`cpuModel: host-passthrough`, nil},
		"more CPUs than any node has":   {`cpuRequest: 2M`, []string{at + "cpuRequest"}},
		"more than can be computed":     {`{cpuRequest: 2E, liveUpdateConfiguration: {maxGuest: 2Ei}}`, []string{at + "cpuRequest", at + "liveUpdateConfiguration.maxGuest"}},
		"a processor by its name":       {`cpuModel: Haswell`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			k := &vmi.KubeVirt{Spec: vmi.KubeVirtSpec{Configuration: *read[vmi.KubeVirtConfiguration](t, tt.in)}}
			var fields []string
			for _, f := range validate.KubeVirt(k) {
				fields = append(fields, f.Field)
			}
			require.Equal(t, tt.want, fields)
		})
	}
}

func TestAConfigurationSaysWhatItAllows(t *testing.T) {
	k := &vmi.KubeVirt{}
	k.Spec.Configuration.DeprecatedEmulatedMachines = []string{"pc-q35-7.2"}
	require.ErrorContains(t, validate.KubeVirt(k).ToAggregate(), `"pc-q35-7.2": must allow q35, which VMIs get that name no machine type: add a pattern for it, or set machineType`)
	k.Spec.Configuration.DeprecatedMachineType = "q35"
	require.ErrorContains(t, validate.KubeVirt(k).ToAggregate(), `"q35": must match pc-q35-7.2, which are the machine types that VMIs may have`)
}

func TestFeatureGatesHaveKubeVirtsNames(t *testing.T) {
	f, unknown := validate.FeatureGates("HostDisk", "LiveMigration", "PasstBinding", "EnableVirtioFsConfigVolumes")
	require.Equal(t, validate.Features{HostDisk: true}, f, "what is on by default stays on")
	require.Equal(t, []string{"LiveMigration"}, unknown)

	f, unknown = f.Without("HostDisk", "PasstBinding", "LiveMigration", "EnableVirtioFsConfigVolumes")
	require.Equal(t, validate.Features{NoPasst: true}, f)
	require.Equal(t, []string{"LiveMigration", "EnableVirtioFsConfigVolumes"}, unknown, "what is always on cannot be switched off")
}

func TestFeatureGatesAllowWhatIsOffByDefault(t *testing.T) {
	c := &vmi.KubeVirtConfiguration{DeveloperConfiguration: &vmi.DeveloperConfiguration{FeatureGates: []string{"LiveMigration", "Sidecar"}}}
	require.Equal(t, validate.Limits{}, validate.Configured(c), "the others change nothing")
	c.DeveloperConfiguration.FeatureGates = append(c.DeveloperConfiguration.FeatureGates, "HostDisk")
	require.Equal(t, validate.Limits{Features: validate.Features{HostDisk: true}}, validate.Configured(c))
	c.DeveloperConfiguration.FeatureGates = append(c.DeveloperConfiguration.FeatureGates, "PortRangesSpec")
	require.Equal(t, validate.Limits{Features: validate.Features{HostDisk: true, PortRanges: true}}, validate.Configured(c))
	c.DeveloperConfiguration.FeatureGates = []string{"VSOCK"}
	require.Equal(t, validate.Limits{Features: validate.Features{VSOCK: true}}, validate.Configured(c))
	c.DeveloperConfiguration.FeatureGates = []string{"WorkloadEncryptionSEV", "WorkloadEncryptionTDX"}
	require.Equal(t, validate.Limits{Features: validate.Features{SEV: true}}, validate.Configured(c), "TDX is not served")
}

func TestADefaultConfigurationHasTheFeaturesOfADefaultKubeVirt(t *testing.T) {
	require.Equal(t, validate.Limits{}, validate.Configured(&vmi.KubeVirtConfiguration{}))
}

func TestAnErrorHasAllFaults(t *testing.T) {
	require.NoError(t, validate.Error(nil))
	err := validate.Error(validate.Migration(&vmi.VirtualMachineInstanceMigration{}, validate.User{}))
	require.ErrorIs(t, err, vmi.ErrInvalid)
	require.EqualError(t, err, "invalid: spec.vmiName: Required value: name the VMI to migrate")
}
