package network_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/network/networktest"
	"github.com/podvisor/podvisor/vmi"
)

func TestTwoInterfaces(t *testing.T) {
	lanAddress := networktest.SecondaryAddress(1)
	for name, bindings := range map[string][]vmi.InterfaceBinding{
		"masquerade and bridge":     {masquerade, bridge},
		"bridge and masquerade":     {bridge, masquerade},
		"bridge and bridge":         {bridge, bridge},
		"masquerade and masquerade": {masquerade, masquerade},
	} {
		t.Run(name, func(t *testing.T) {
			pod, node := networktest.Pod(t)
			v := instance(bindings...)
			lan := networktest.AttachAll(t, pod, v)[0]
			cfg := bind(t, pod, v)
			require.Equal(t, cfg, bind(t, pod, v), "the plan for what is bound is the same plan")
			require.Equal(t, []string{networktest.PodAddress, lanAddress}, []string{cfg.Interfaces[0].IP, cfg.Interfaces[1].IP})

			guest := networktest.Guest(t, pod, cfg.Attachments...)
			require.Contains(t, networktest.Lease(t, guest, "eth0"), "ip='"+cfg.Attachments[0].DHCP.Address.Addr().String()+"'\n")
			require.Contains(t, networktest.Lease(t, guest, "eth1"), "ip='"+cfg.Attachments[1].DHCP.Address.Addr().String()+"'\n")
			if bindings[1].Masquerade != nil {
				networktest.IP(t, guest, "route add 10.100.1.0/24 via 10.0.3.1")
			}
			networktest.Listen(t, guest, "guest", "tcp", ":8080")
			networktest.Listen(t, node, "world", "tcp", ":80")
			networktest.Listen(t, lan, "lan", "tcp", ":80")
			onLoopback := ""
			if bindings[0].Masquerade != nil {
				onLoopback = "guest saw 10.0.2.1"
			}
			for _, a := range []attempt{
				{"others reach the guest by the pod network", node, "tcp", networktest.PodAddress + ":8080", "guest saw " + networktest.NodeAddress},
				{"others reach the guest by the secondary network", lan, "tcp", lanAddress + ":8080", "guest saw " + networktest.SecondaryGateway(1)},
				{"the guest reaches the world by the pod network", guest, "tcp", networktest.WorldAddress + ":80", "world saw " + networktest.PodAddress},
				{"the guest reaches the secondary network", guest, "tcp", networktest.SecondaryGateway(1) + ":80", "lan saw " + lanAddress},
				{"the loopback is that of the pod network's interface", pod, "tcp", "127.0.0.1:8080", onLoopback},
			} {
				t.Run(a.name, a.check)
			}
		})
	}
}

func TestBridgeOnANetworkWithoutIPAM(t *testing.T) {
	pod, _ := networktest.Pod(t)
	v := instance(masquerade, bridge)
	lan := networktest.Attach(t, pod, networktest.Links(v)["lan1"], 1)
	cfg := bind(t, pod, v)
	require.Equal(t, cfg, bind(t, pod, v), "the plan for what is bound is the same plan")
	require.Nil(t, cfg.Attachments[1].DHCP)
	guest := networktest.Guest(t, pod, cfg.Attachments...)
	networktest.IP(t, guest, "addr add 10.100.1.77/24 dev eth1")
	ping(t, guest, networktest.SecondaryGateway(1))
	require.Contains(t, networktest.IP(t, lan, "neigh show 10.100.1.77"), networktest.SecondaryMAC(1), "the guest has the MAC of the pod's link")
}
