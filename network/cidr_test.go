package network_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/network/networktest"
	"github.com/podvisor/podvisor/vmi"
)

func TestAGuestBehindMasqueradeHasTheNetworkOfItsSpec(t *testing.T) {
	pod, node := networktest.Pod(t)
	v := instance(masquerade)
	v.Spec.Networks[0].Pod = &vmi.PodNetwork{VMNetworkCIDR: "192.168.66.128/25"}
	cfg := bind(t, pod, v)
	guest := networktest.Guest(t, pod, cfg.Attachments[0])
	lease := networktest.Lease(t, guest, "eth0")
	require.Contains(t, lease, "ip='192.168.66.130'\n")
	require.Contains(t, lease, "mask='25'\n")
	require.Contains(t, lease, "router='192.168.66.129'\n")
	ping(t, guest, networktest.WorldAddress)
	networktest.Listen(t, guest, "guest", "tcp", "192.168.66.130:8080")
	attempt{"the pod's address leads to the guest", node, "tcp", networktest.PodAddress + ":8080", "guest saw " + networktest.NodeAddress}.check(t)
}
