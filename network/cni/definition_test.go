package cni_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/network/cni"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func TestDefinitionsAreThoseOfTheNetworksThatAreAttached(t *testing.T) {
	t.Parallel()
	v := vmitest.New(vmitest.WithMasquerade("default"), vmitest.WithMultus("lan", "lan"), vmitest.WithMultus("san", "infra/san"),
		vmitest.WithMultus("first", "first"), vmitest.WithMultus("other", "infra/other"), vmitest.WithMultus("gone", "gone"))
	v.Spec.Networks[3].Multus.Default = true
	v.Spec.Networks[4].Multus.Default = true
	v.Spec.Domain.Devices.Interfaces[5].State = vmi.InterfaceAbsent
	require.Equal(t, map[string]types.NamespacedName{
		"lan":   {Namespace: "default", Name: "lan"},
		"san":   {Namespace: "infra", Name: "san"},
		"other": {Namespace: "infra", Name: "other"},
	}, cni.Definitions(v))
}

func TestOnlyADevicePluginHasTheResourceOfANetwork(t *testing.T) {
	t.Parallel()
	for name, right := range map[string]bool{
		"intel.com/sriov_netdevice": true, "bridge.network.kubevirt.io/br1": true,
		"memory": false, "cpu": false, "hugepages-2Mi": false, "kubernetes.io/batteries": false, "x.kubernetes.io/y": false,
		"intel.com/": false, "/x": false, "a/b/c": false, "requests.example.com/x": false, "intel.com/a b": false, "": false,
	} {
		require.Equal(t, right, cni.ResourceFault(name) == "", "%q: %s", name, cni.ResourceFault(name))
	}
}
