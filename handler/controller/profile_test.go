package controller

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/config"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/served"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// A launcher knows nothing of the cluster's defaults.
func TestALauncherAcceptsWhatTheClustersDefaultsMakeOfAVMI(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]vmi.KubeVirtConfiguration{
		"nothing is configured":           {},
		"less may be plugged":             {LiveUpdateConfiguration: &vmi.LiveUpdateConfiguration{MaxHotplugRatio: 2}},
		"there are limits":                {LiveUpdateConfiguration: &vmi.LiveUpdateConfiguration{MaxCPUSockets: new(uint32(3)), MaxGuest: new(resource.MustParse("3Gi"))}},
		"nothing may be plugged":          {VMRolloutStrategy: new(vmi.RolloutStage)},
		"processor, eviction and network": {CPUModel: vmi.CPUModelPassthrough, EvictionStrategy: new(vmi.EvictionLiveMigrate), Network: &vmi.NetworkConfiguration{DefaultNetworkInterface: "masquerade"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			done := defaults.Apply(vmitest.New(), profile(config.Config{Defaults: defaults.Configured(&c)}))
			require.Empty(t, served.Faults(done, defaults.Profile{}))
		})
	}
}
