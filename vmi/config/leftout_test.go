package config

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/vmi"
)

// A configuration that was stored before the schema had a rule for devices.
func TestADeviceWithoutAProviderIsLeftOutOfAConfiguration(t *testing.T) {
	t.Parallel()
	var k vmi.KubeVirt
	require.NoError(t, yaml.UnmarshalStrict([]byte(`
spec:
  configuration:
    cpuModel: Haswell
    permittedHostDevices:
      pciHostDevices:
      - {pciVendorSelector: "10DE:1EB8", resourceName: example.com/own}
      - {pciVendorSelector: "10DE:1EB8", resourceName: example.com/gpu, externalResourceProvider: true}
`), &k))
	c, faults := Resolve(&k)
	require.Empty(t, faults, "the rest is in force")
	require.Equal(t, "Haswell", c.Defaults.CPUModel)
	require.Equal(t, map[string]bool{"example.com/gpu": true}, c.Pods.HostDevices)
	require.Equal(t, c.Pods.HostDevices, c.Limits.Devices)
	left := leftOut(&k)
	require.Len(t, left, 1)
	require.Equal(t, "spec.configuration.permittedHostDevices.pciHostDevices[0].externalResourceProvider", left[0].Field)
	status := Report(NextState(State{}, []*vmi.KubeVirt{&k}), &k, Components{}, metav1.Time{})
	degraded := status.Condition(vmi.ConditionDegraded)
	require.Equal(t, ReasonInvalidConfiguration, degraded.Reason)
	require.Contains(t, degraded.Message, "in force without these devices of nodes: spec.configuration.permittedHostDevices.pciHostDevices[0]")

	k.Spec.Configuration.CPUModel = "no model"
	_, faults = Resolve(&k)
	require.Len(t, faults, 2, "another fault keeps the whole out of force, and all are reported")
}
