package network_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/network/networktest"
)

// A secondary network may be the segment of the pod network, as with a plugin that bridges
// to the node's card. The pod's own link must not answer for the address of the guest.
func TestOneSegmentForBothNetworksOfAPod(t *testing.T) {
	const second = "10.244.0.6"
	pod, node := networktest.Pod(t)
	v := instance(masquerade, bridge)
	lan := networktest.Links(v)["lan1"]
	networktest.IP(t, node, "link add segment type bridge mcast_snooping 0")
	networktest.IP(t, node, "link set podlink master segment")
	networktest.IP(t, node, "addr del "+networktest.NodeAddress+"/24 dev podlink")
	networktest.IP(t, node, "addr add "+networktest.NodeAddress+"/24 dev segment")
	networktest.IP(t, node, "link set segment up")
	networktest.IP(t, node, fmt.Sprintf("link add second type veth peer name %s address %s mtu %d netns /proc/%d/fd/%d",
		lan, networktest.SecondaryMAC(1), networktest.PodMTU, os.Getpid(), pod.Fd()))
	networktest.IP(t, node, "link set second master segment up")
	networktest.IP(t, pod, "addr add "+second+"/24 dev "+lan)
	networktest.IP(t, pod, "link set "+lan+" up")

	cfg := bind(t, pod, v)
	guest := networktest.Guest(t, pod, cfg.Attachments...)
	networktest.IP(t, guest, "addr add "+second+"/24 dev eth1")
	answers := arping(t, node, 3, "segment", second, networktest.SecondaryMAC(1))
	require.NotContains(t, answers, "["+networktest.PodMAC+"]", "the pod answers for its guest")
	arping(t, node, 1, "segment", networktest.PodAddress, networktest.PodMAC)
	networktest.Listen(t, guest, "guest", "tcp", ":8080")
	attempt{"the bridged interface", node, "tcp", second + ":8080", "guest saw " + networktest.NodeAddress}.check(t)
	networktest.Lease(t, guest, "eth0")
	// The guest answers others than its neighbours by its default route.
	ping(t, node, networktest.PodAddress, "-I", networktest.WorldAddress)
}
