package controller

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func TestVMIsWithOneMACAddressOnANetworkAreQueuedForEachOther(t *testing.T) {
	t.Parallel()
	station := func(name, namespace, network string) *vmi.VirtualMachineInstance {
		v := vmitest.New(vmitest.WithName(name), vmitest.WithInterface(
			vmi.Interface{Name: "lan", MacAddress: "02:00:00:00:77:01", InterfaceBinding: vmi.InterfaceBinding{Bridge: &vmi.InterfaceBridge{}}},
			vmi.NetworkSource{Multus: &vmi.MultusNetwork{NetworkName: network}}))
		v.Namespace = namespace
		return v
	}
	a, b, c, other := station("a", "default", "lan"), station("b", "default", "default/lan"), station("a", "elsewhere", "default/lan"), station("d", "elsewhere", "lan")
	r := newRig(t, a)
	for _, v := range []*vmi.VirtualMachineInstance{b, c, other} {
		require.NoError(t, r.caches.instances.GetIndexer().Add(v))
	}
	require.ElementsMatch(t, []*vmi.VirtualMachineInstance{b, c}, r.caches.neighbours(a))
	ended := a.DeepCopy()
	ended.Status.Phase = vmi.PhaseSucceeded
	require.Empty(t, r.caches.neighbours(ended))
	require.ElementsMatch(t, []string{"default/b", "elsewhere/a"}, r.caches.instancesNear(ended), "they say that it is gone")

	for i := range 10 * mostNeighbours {
		require.NoError(t, r.caches.instances.GetIndexer().Add(station(fmt.Sprintf("many-%d", i), "default", "lan")))
	}
	require.Len(t, r.caches.neighbours(a), mostNeighbours)
	require.Len(t, r.caches.instancesNear(a), mostNeighbours)
}
