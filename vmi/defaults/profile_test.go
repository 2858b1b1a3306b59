package defaults_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func TestTheProfileDecides(t *testing.T) {
	t.Parallel()
	p := defaults.Profile{Binding: defaults.Masquerade, CPURequest: new(resource.MustParse("2"))}
	s := defaults.Instance(&vmi.VirtualMachineInstance{}, p).Spec
	require.NotNil(t, s.Domain.Devices.Interfaces[0].Masquerade)
	require.Equal(t, resource.MustParse("2"), s.Domain.Resources.Requests[corev1.ResourceCPU])

	named := vmitest.New(vmitest.WithBridge("net"))
	named.Spec.Domain.Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	s = defaults.Instance(named, p).Spec
	require.NotNil(t, s.Domain.Devices.Interfaces[0].Bridge)
	require.Equal(t, resource.MustParse("1"), s.Domain.Resources.Requests[corev1.ResourceCPU], "a limit asks for as much")
}
