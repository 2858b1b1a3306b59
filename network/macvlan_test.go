package network_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/network/link"
	"github.com/podvisor/podvisor/internal/network/networktest"
	"github.com/podvisor/podvisor/internal/testenv"
)

// attachMacvlan attaches the pod to a network as the CNI plugin macvlan does, by a link
// with the MAC address, and returns the namespace of another host of the network with the
// address 10.100.1.1.
func attachMacvlan(t *testing.T, pod *os.File, name, mac string, addresses ...string) *os.File {
	t.Helper()
	node, host := networktest.Namespace(t), networktest.Namespace(t)
	networktest.IP(t, node, "link add wire type bridge")
	networktest.IP(t, node, "link set wire up")
	networktest.IP(t, node, fmt.Sprintf("link add port master wire type veth peer name eth0 netns /proc/%d/fd/%d", os.Getpid(), host.Fd()))
	networktest.IP(t, node, "link set port up")
	networktest.IP(t, host, "addr add 10.100.1.1/24 dev eth0")
	networktest.IP(t, host, "link set eth0 up")
	networktest.IP(t, node, "link add link wire name "+name+" address "+mac+" type macvlan mode bridge")
	networktest.IP(t, node, fmt.Sprintf("link set %s netns /proc/%d/fd/%d", name, os.Getpid(), pod.Fd()))
	for _, a := range addresses {
		networktest.IP(t, pod, "addr add "+a+" dev "+name)
	}
	networktest.IP(t, pod, "link set "+name+" up")
	return host
}

func TestBridgeOnAMacvlanLink(t *testing.T) {
	for _, tt := range []struct {
		name, plugin, asked, guest string
	}{
		{"the guest has the MAC address of the link", "0a:58:0a:64:01:05", "", "0a:58:0a:64:01:05"},
		{"the plugin could not set the MAC address of the spec", "0a:58:0a:64:01:05", "02:00:00:00:77:01", "02:00:00:00:77:01"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pod, _ := networktest.Pod(t)
			v := instance(masquerade, bridge)
			v.Spec.Domain.Devices.Interfaces[1].MacAddress = tt.asked
			name := networktest.Links(v)["lan1"]
			host := attachMacvlan(t, pod, name, tt.plugin, "10.100.1.5/24")
			cfg := bind(t, pod, v)
			require.Equal(t, tt.guest, cfg.Attachments[1].MAC)
			guest := networktest.Guest(t, pod, cfg.Attachments[1])
			networktest.Lease(t, guest, "eth0")
			ping(t, guest, "10.100.1.1")
			ping(t, host, "10.100.1.5")
			require.Contains(t, networktest.IP(t, host, "neigh show 10.100.1.5"), tt.guest)

			again := bind(t, pod, v)
			require.Equal(t, cfg, again, "what is bound is planned as before")
			before, err := link.Observe(t.Context(), pod)
			require.NoError(t, err)

			// A process that was killed before its last step leaves no way to the guest.
			bridgeCommand := testenv.Program(t, "bridge")
			tap := cfg.Attachments[1].Tap
			networktest.Run(t, pod, bridgeCommand, "fdb", "del", tt.guest, "dev", tap, "master")
			bind(t, pod, v)
			after, err := link.Observe(t.Context(), pod)
			require.NoError(t, err)
			require.Equal(t, before.String(), after.String())
			require.Contains(t, after.String(), "leads to "+tt.guest)
			networktest.IP(t, host, "neigh flush all")
			ping(t, host, "10.100.1.5")
		})
	}
}
