package config_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/config"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/validate"
)

// kubevirt is a KubeVirt with this configuration.
func kubevirt(c vmi.KubeVirtConfiguration) *vmi.KubeVirt {
	k := &vmi.KubeVirt{Spec: vmi.KubeVirtSpec{Configuration: c}}
	k.Namespace, k.Name, k.UID, k.Generation = "kubevirt", "kubevirt", "1", 1
	return k
}

func limits(qps float32, burst int) *vmi.ComponentConfiguration {
	return &vmi.ComponentConfiguration{RestClient: &vmi.RestClientConfiguration{RateLimiter: &vmi.RateLimiter{
		TokenBucketRateLimiter: &vmi.TokenBucketRateLimiter{QPS: qps, Burst: burst},
	}}}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		in   vmi.KubeVirtConfiguration
		want config.Config
	}{
		"nothing is the default": {},
		"empty parts are the default": {
			in: vmi.KubeVirtConfiguration{Network: &vmi.NetworkConfiguration{}, ControllerConfiguration: &vmi.ComponentConfiguration{}, DeveloperConfiguration: &vmi.DeveloperConfiguration{}},
		},
		"what VMIs get that do not say": {
			in:   vmi.KubeVirtConfiguration{CPURequest: new(resource.MustParse("1")), Network: &vmi.NetworkConfiguration{DefaultNetworkInterface: "masquerade"}},
			want: config.Config{Defaults: defaults.Profile{CPURequest: new(resource.MustParse("1")), Binding: defaults.Masquerade}},
		},
		"100m stands for a share of each CPU": {
			in: vmi.KubeVirtConfiguration{CPURequest: new(resource.MustParse("0.1"))},
		},
		"a bridge that is not permitted is not the default": {
			in:   vmi.KubeVirtConfiguration{Network: &vmi.NetworkConfiguration{PermitBridgeInterfaceOnPodNetwork: new(false)}},
			want: config.Config{Defaults: defaults.Profile{Binding: defaults.Masquerade}, Limits: validate.Limits{NoBridgeOnPodNetwork: true}},
		},
		"architecture, machine type and processor": {
			in: vmi.KubeVirtConfiguration{CPUModel: "host-passthrough", ArchitectureConfiguration: &vmi.ArchitectureConfiguration{
				DefaultArchitecture: "amd64", AMD64: &vmi.ArchitectureSettings{MachineType: "pc-q35-7.2", EmulatedMachines: []string{"pc-q35-7.*"}},
			}},
			want: config.Config{
				Defaults: defaults.Profile{Architecture: "amd64", CPUModel: "host-passthrough", MachineTypes: map[string]string{"amd64": "pc-q35-7.2"}},
				Limits:   validate.Limits{Architecture: "amd64", MachineTypes: map[string][]string{"amd64": {"pc-q35-7.*"}}},
			},
		},
		"the old places of the machine type": {
			in: vmi.KubeVirtConfiguration{DeprecatedMachineType: "pc", DeprecatedEmulatedMachines: []string{"pc"}},
			want: config.Config{
				Defaults: defaults.Profile{MachineTypes: map[string]string{"amd64": "pc"}},
				Limits:   validate.Limits{MachineTypes: map[string][]string{"amd64": {"pc"}}},
			},
		},
		"pods": {
			in: vmi.KubeVirtConfiguration{
				ImagePullPolicy: corev1.PullNever, AdditionalGuestMemoryOverheadRatio: new("1.5"),
				DeveloperConfiguration: &vmi.DeveloperConfiguration{UseEmulation: new(false), CPUAllocationRatio: 3, MemoryOvercommit: 150, NodeSelectors: map[string]string{"a": "b"}},
			},
			want: config.Config{Pods: config.Pods{
				ImagePullPolicy: corev1.PullNever, Emulation: new(false), CPUAllocationRatio: 3, MemoryOvercommit: 150,
				OverheadRatio: 1.5, NodeSelector: map[string]string{"a": "b"},
			}},
		},
		"launchers": {
			in: vmi.KubeVirtConfiguration{
				SMBIOS: &vmi.SMBIOSConfiguration{Sku: "7"}, MemBalloonStatsPeriod: new(uint32(5)),
				DeveloperConfiguration: &vmi.DeveloperConfiguration{LogVerbosity: &vmi.LogVerbosity{VirtLauncher: 4}},
			},
			want: config.Config{Launcher: config.Launcher{SMBIOS: vmi.SMBIOSConfiguration{Sku: "7"}, StatsPeriod: 5, Verbosity: 4}},
		},
		"the space of claims": {
			in:   vmi.KubeVirtConfiguration{DeveloperConfiguration: &vmi.DeveloperConfiguration{LessPVCSpaceToleration: 5, MinimumReservePVCBytes: 1 << 20, DiskVerification: &vmi.DiskVerification{MemoryLimit: new(resource.MustParse("100Mi"))}}},
			want: config.Config{Launcher: config.Launcher{ReserveBytes: 1 << 20, TolerancePercent: 5, InspectionMemoryBytes: 100 << 20}},
		},
		"a period of 0 measures nothing": {
			in:   vmi.KubeVirtConfiguration{MemBalloonStatsPeriod: new(uint32(0))},
			want: config.Config{Launcher: config.Launcher{StatsPeriod: -1}},
		},
		"components": {
			in: vmi.KubeVirtConfiguration{
				ControllerConfiguration: limits(10, 20), HandlerConfiguration: limits(1.5, 2),
				DeveloperConfiguration: &vmi.DeveloperConfiguration{LogVerbosity: &vmi.LogVerbosity{VirtController: 1, VirtHandler: 2, NodeVerbosity: map[string]uint{"n": 9}}},
			},
			want: config.Config{
				Controller: config.Component{QPS: 10, Burst: 20, Verbosity: 1}, Handler: config.Component{QPS: 1.5, Burst: 2, Verbosity: 2},
				NodeVerbosity: map[string]uint{"n": 9},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, faults := config.Resolve(kubevirt(tt.in))
			require.Empty(t, faults)
			require.Equal(t, tt.want, got)
		})
	}
}

func TestTheVerbosityOfANodeWins(t *testing.T) {
	t.Parallel()
	c := config.Config{Handler: config.Component{QPS: 7, Verbosity: 1}, NodeVerbosity: map[string]uint{"n": 9}}
	require.Equal(t, config.Component{QPS: 7, Verbosity: 9}, c.OnNode("n"))
	require.Equal(t, config.Component{QPS: 7, Verbosity: 1}, c.OnNode("m"))
	require.False(t, config.Verbosity(2).Debug())
	require.True(t, config.Verbosity(3).Debug())
}

func TestVMIsKeepTheirLaunchersWhereNoMethodIsConfigured(t *testing.T) {
	t.Parallel()
	updates := func(s *vmi.WorkloadUpdateStrategy) config.Updates {
		k := kubevirt(vmi.KubeVirtConfiguration{})
		k.Spec.WorkloadUpdateStrategy = s
		c, faults := config.Resolve(k)
		require.Empty(t, faults)
		return c.Updates
	}
	require.Zero(t, updates(nil))
	require.Equal(t, config.Updates{BatchSize: 10, BatchInterval: time.Minute}, updates(&vmi.WorkloadUpdateStrategy{}))
	require.Equal(t, config.Updates{Migrate: true, BatchSize: 10, BatchInterval: time.Minute},
		updates(&vmi.WorkloadUpdateStrategy{WorkloadUpdateMethods: []vmi.WorkloadUpdateMethod{vmi.WorkloadUpdateLiveMigrate}}))
	require.Equal(t, config.Updates{Evict: true, BatchSize: 3, BatchInterval: time.Hour}, updates(&vmi.WorkloadUpdateStrategy{
		WorkloadUpdateMethods: []vmi.WorkloadUpdateMethod{vmi.WorkloadUpdateEvict}, BatchEvictionSize: new(3), BatchEvictionInterval: &metav1.Duration{Duration: time.Hour},
	}))
}
