package config_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/config"
)

func TestAFeatureGateWithoutEffectIsSaid(t *testing.T) {
	t.Parallel()
	const at = "spec.configuration.developerConfiguration.featureGates[0]: "
	for name, want := range map[string]string{
		"HostDisk": "", "VSOCK": "", "PortRangesSpec": "", "WorkloadEncryptionSEV": "", "HostDevices": "", "GPU": "", "EnableVirtioFsConfigVolumes": "",
		"HostDisc": at + `"HostDisc" has no effect: it is misspelt, or what it switches on is not served`,
		"hostdisk": at + `"hostdisk" has no effect: write HostDisk`,
		"gpu":      at + `"gpu" has no effect: write GPU`,
		"Snapshot": at + `"Snapshot" has no effect: it is misspelt, or what it switches on is not served`,
		"Sidecar":  at + `"Sidecar" has no effect: it is misspelt, or what it switches on is not served`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &vmi.KubeVirtConfiguration{DeveloperConfiguration: &vmi.DeveloperConfiguration{FeatureGates: []string{name}}}
			got := config.Gates(c)
			k := &vmi.KubeVirt{ObjectMeta: metav1.ObjectMeta{UID: "1"}}
			now := metav1.NewTime(time.Unix(1_700_000_000, 0))
			s := config.Report(config.State{KubeVirt: k, InForce: c}, k, config.Components{}, now)
			condition := s.Condition(vmi.ConditionGatesWithoutEffect)
			if want == "" {
				require.Empty(t, got)
				require.Nil(t, condition)
				return
			}
			require.Equal(t, []string{want}, got)
			require.Equal(t, want, condition.Message)
			k.Status = s
			s = config.Report(config.State{KubeVirt: k, InForce: &vmi.KubeVirtConfiguration{}}, k, config.Components{}, now)
			require.Nil(t, s.Condition(vmi.ConditionGatesWithoutEffect), "when it is corrected")
		})
	}
	require.Empty(t, config.Gates(nil))
	require.Empty(t, config.Gates(&vmi.KubeVirtConfiguration{}))
}
