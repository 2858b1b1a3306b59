package validate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/validate"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func TestAConfigurationThatCannotBeUsedIsReportedInFull(t *testing.T) {
	t.Parallel()
	k := &vmi.KubeVirt{}
	k.Spec.Configuration = vmi.KubeVirtConfiguration{
		CPURequest:                         new(resource.MustParse("0")),
		AdditionalGuestMemoryOverheadRatio: new("101"),
		ImagePullPolicy:                    "Sometimes",
		Network:                            &vmi.NetworkConfiguration{DefaultNetworkInterface: "slirp"},
		SMBIOS:                             &vmi.SMBIOSConfiguration{Family: "a\nb"},
		MigrationConfiguration:             &vmi.MigrationConfiguration{Network: new("a/b/c")},
		HandlerConfiguration: &vmi.ComponentConfiguration{RestClient: &vmi.RestClientConfiguration{RateLimiter: &vmi.RateLimiter{
			TokenBucketRateLimiter: &vmi.TokenBucketRateLimiter{},
		}}},
		DeveloperConfiguration: &vmi.DeveloperConfiguration{
			CPUAllocationRatio: -1, MemoryOvercommit: 9, NodeSelectors: map[string]string{"a b": "c", "d": "e f"},
		},
	}
	var fields []string
	for _, f := range validate.KubeVirt(k) {
		fields = append(fields, f.Field)
	}
	const at = "spec.configuration."
	require.Equal(t, []string{
		at + "cpuRequest", at + "additionalGuestMemoryOverheadRatio", at + "imagePullPolicy", at + "network.defaultNetworkInterface",
		at + "smbios.family", at + "migrations.network",
		at + "handlerConfiguration.restClient.rateLimiter.tokenBucketRateLimiter.qps", at + "handlerConfiguration.restClient.rateLimiter.tokenBucketRateLimiter.burst",
		at + "developerConfiguration.cpuAllocationRatio", at + "developerConfiguration.memoryOvercommit",
		at + "developerConfiguration.nodeSelectors[a b]", at + "developerConfiguration.nodeSelectors[d]",
	}, fields)
}

func TestTheDefaultBindingMustBePermitted(t *testing.T) {
	t.Parallel()
	k := &vmi.KubeVirt{}
	k.Spec.Configuration.Network = &vmi.NetworkConfiguration{DefaultNetworkInterface: "bridge", PermitBridgeInterfaceOnPodNetwork: new(false)}
	require.Len(t, validate.KubeVirt(k), 1)
	k.Spec.Configuration.Network.DefaultNetworkInterface = "masquerade"
	require.Empty(t, validate.KubeVirt(k))
	k.Spec.Configuration.Network.DefaultNetworkInterface = ""
	require.Empty(t, validate.KubeVirt(k))
}

func TestAnUpdateStrategyThatMeansNothingIsReported(t *testing.T) {
	t.Parallel()
	k := &vmi.KubeVirt{}
	k.Spec.WorkloadUpdateStrategy = &vmi.WorkloadUpdateStrategy{
		WorkloadUpdateMethods: []vmi.WorkloadUpdateMethod{"LiveMigrate", "", "Restart", "Evict"},
		BatchEvictionSize:     new(0), BatchEvictionInterval: &metav1.Duration{Duration: -time.Second},
	}
	var fields []string
	for _, f := range validate.KubeVirt(k) {
		fields = append(fields, f.Field)
	}
	const at = "spec.workloadUpdateStrategy."
	require.Equal(t, []string{at + "workloadUpdateMethods[1]", at + "workloadUpdateMethods[2]", at + "batchEvictionSize", at + "batchEvictionInterval"}, fields)
	k.Spec.WorkloadUpdateStrategy = &vmi.WorkloadUpdateStrategy{BatchEvictionSize: new(1), BatchEvictionInterval: &metav1.Duration{}}
	require.Empty(t, validate.KubeVirt(k))
}

func TestOnlyOneKubeVirt(t *testing.T) {
	t.Parallel()
	named := func(namespace, name string) *vmi.KubeVirt {
		k := &vmi.KubeVirt{}
		k.Namespace, k.Name = namespace, name
		return k
	}
	require.Nil(t, validate.OnlyKubeVirt(named("a", "b"), nil))
	require.Nil(t, validate.OnlyKubeVirt(named("a", "b"), []*vmi.KubeVirt{named("a", "b")}), "itself")
	err := validate.OnlyKubeVirt(named("a", "b"), []*vmi.KubeVirt{named("b", "b")})
	require.Equal(t, field.ErrorTypeForbidden, err.Type)
	require.ErrorContains(t, err, "b/b is there already")
}

func TestABridgeThatTheClusterForbids(t *testing.T) {
	t.Parallel()
	at := field.NewPath("spec")
	bridged := defaults.Instance(vmitest.New(vmitest.WithBridge("net")), defaults.Profile{})
	masqueraded := defaults.Instance(vmitest.New(vmitest.WithMasquerade("net")), defaults.Profile{})
	forbid := validate.Limits{NoBridgeOnPodNetwork: true}
	require.Empty(t, validate.Spec(at, &bridged.Spec, validate.Limits{}))
	require.Empty(t, validate.Spec(at, &masqueraded.Spec, forbid))
	faults := validate.Spec(at, &bridged.Spec, forbid)
	require.Len(t, faults, 1)
	require.ErrorContains(t, faults[0], "use masquerade")
}
