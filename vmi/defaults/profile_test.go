package defaults_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func TestTheProfileDecides(t *testing.T) {
	t.Parallel()
	p := defaults.Profile{Binding: defaults.Masquerade, CPURequest: new(resource.MustParse("2"))}
	s := defaults.Apply(&vmi.VirtualMachineInstance{}, p).Spec
	require.NotNil(t, s.Domain.Devices.Interfaces[0].Masquerade)
	require.Equal(t, resource.MustParse("2"), s.Domain.Resources.Requests[vmi.ResourceCPU])

	named := vmitest.New(vmitest.WithBridge("net"))
	named.Spec.Domain.Resources.Limits = vmi.ResourceList{vmi.ResourceCPU: resource.MustParse("1")}
	s = defaults.Apply(named, p).Spec
	require.NotNil(t, s.Domain.Devices.Interfaces[0].Bridge)
	require.Equal(t, resource.MustParse("1"), s.Domain.Resources.Requests[vmi.ResourceCPU], "a limit asks for as much")
}
