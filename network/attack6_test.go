package network_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/network/networktest"
	"github.com/podvisor/podvisor/internal/network/nft"
	"github.com/podvisor/podvisor/network"
)

// Who has taken over a launcher can write any frame to the tap device by which it
// answers the guest. The pod, which forwards what its guest sends, must get none of it,
// and the guest nothing but what a router says.
func TestAttackThePodByTheTapDeviceOfTheRouter(t *testing.T) {
	advert := ethernet(routedMAC, gatewayMAC, typeIPv6, discovery("fe80::ff:fe00:0", everyone6, routing, "", sourceOption, gatewayMAC))
	toGuest := []frameCase{
		{"ARP in the name of the gateway", ethernet(routedMAC, gatewayMAC, typeARP, arp(2, gatewayMAC, gateway4, routed4))},
		{"a datagram", ethernet(routedMAC, gatewayMAC, typeIPv4, ipv4("198.51.100.7", routed4, 17, 0, udp(1, 2, nil)))},
		{"an advertisement of a router from another MAC", ethernet(routedMAC, victimMAC, typeIPv6, discovery(router6, everyone6, routing, "", 0, ""))},
		{"an announcement of an address", ethernet(routedMAC, gatewayMAC, typeIPv6, discovery(gateway6, everyone6, advertisement, gateway6, targetOption, gatewayMAC))},
		{"an answer of DHCP", ethernet(routedMAC, gatewayMAC, typeIPv4, ipv4(gateway4, "255.255.255.255", 17, 0, udp(server, client, dhcpMessage(2, routedMAC))))},
	}
	toPod := []frameCase{
		{"a datagram from a stranger for the world", ethernet(gatewayMAC, gatewayMAC, typeIPv4, ipv4("198.51.100.7", networktest.WorldAddress, 17, 0, udp(1, 2, nil)))},
		{"a datagram of IPv6 from a stranger for the world", ethernet(gatewayMAC, gatewayMAC, typeIPv6, datagram6(victim6, networktest.WorldAddress6, 1, 2, nil))},
		{"an advertisement of a router for everyone", ethernet(everyMAC6, gatewayMAC, typeIPv6, discovery(router6, everyone6, routing, "", 0, ""))},
		{"an answer of DHCPv6 for everyone", ethernet(everyMAC6, gatewayMAC, typeIPv6, datagram6(router6, everyone6, server6, client6, nil))},
	}
	for _, rules := range []bool{false, true} {
		name := "without the rules"
		if rules {
			name = "with the rules"
		}
		t.Run(name, func(t *testing.T) {
			pod, _ := networktest.DualPod(t)
			cfg := unfiltered(t, pod, instance(masquerade))
			if rules {
				require.NoError(t, nft.Apply(pod, cfg))
			}
			guest := networktest.Guest(t, pod, cfg.Attachments[0])
			s := newSender(t, pod, network.Attachment{Tap: "ra0"}, advert)
			atGuest, inPod := networktest.Watch(t, guest, "eth0"), networktest.Watch(t, pod, "k6t-eth0")
			s.arrive(t, atGuest, toGuest, !rules)
			s.arrive(t, atGuest, []frameCase{{"an answer of DHCPv6", ethernet(routedMAC, gatewayMAC, typeIPv6, datagram6(router6, routedOwn6, server6, client6, nil))}}, true)
			for _, tt := range toPod {
				known := s.send(t, tt.frame)
				if rules {
					require.True(t, atGuest.Await(s.send(t, advert)))
					require.False(t, inPod.Has(known), tt.name)
				} else {
					require.True(t, inPod.Await(known), tt.name)
				}
			}
		})
	}
}
