package network_test

import (
	"fmt"
	"testing"

	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/network/networktest"
	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/vmi"
)

// group is the group of that number among those that bridges do not forward (IEEE 802.1D,
// table 7-10): a bridge of Linux hands frames to some of them to the port itself.
func group(number int) string { return fmt.Sprintf("01:80:c2:00:00:%02x", number) }

// tagged is a frame with a tag of that network.
func tagged(frame []byte, network byte) []byte {
	tag := []byte{0x81, 0, 0, network}
	return append(append(append([]byte{}, frame[:12]...), tag...), frame[12:]...)
}

// toGroups are frames with the data to each of the groups, for the pod of a guest of that
// MAC.
func toGroups(mac, own, own6, pod, pod6 string, data []byte) []frameCase {
	const stranger, stranger6 = "198.51.100.7", "2001:db8:7::7"
	echo := append([]byte{8, 0, 0, 0, 0, 1, 0, 1}, data...)
	s := sum(echo)
	echo[2], echo[3] = byte(s>>8), byte(s)
	echo6 := summed(stranger6, pod6, icmp6, 2, append([]byte{128, 0, 0, 0, 0, 1, 0, 1}, data...))
	advert := message("fe80::7", everyone6, routing, "", 0, "")
	advert = append(append([]byte{}, advert[:4]...), 64, 0, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0)
	advert = append(append(advert, 3, 4, 64, 0xc0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0), ip("2001:db8:66::")...)
	advert = summed("fe80::7", everyone6, icmp6, 2, advert)
	var all []frameCase
	for n := range 16 {
		for _, from := range []string{mac, victimMAC} {
			send := func(kind uint16, payload []byte) []byte { return ethernet(group(n), from, kind, payload) }
			for name, frame := range map[string][]byte{
				"a datagram":                              send(typeIPv4, ipv4(own, pod, 17, 0, udp(1, secretPort, data))),
				"a datagram from a stranger":              send(typeIPv4, ipv4(stranger, pod, 17, 0, udp(1, secretPort, data))),
				"a datagram to everyone":                  send(typeIPv4, ipv4(own, "255.255.255.255", 17, 0, udp(1, secretPort, data))),
				"a datagram to a group":                   send(typeIPv4, ipv4(own, "224.0.0.1", 17, 0, udp(1, secretPort, data))),
				"a datagram for another":                  send(typeIPv4, ipv4(own, networktest.WorldAddress, 17, 0, udp(1, secretPort, data))),
				"an echo to a stranger":                   send(typeIPv4, ipv4(networktest.WorldAddress, pod, 1, 0, echo)),
				"ARP":                                     send(typeARP, arp(1, from, own, pod)),
				"ARP in the name of another":              send(typeARP, arp(1, from, stranger, pod)),
				"a datagram of IPv6":                      send(typeIPv6, datagram6(own6, pod6, 1, secretPort, data)),
				"a datagram of IPv6 from a stranger":      send(typeIPv6, datagram6(stranger6, pod6, 1, secretPort, data)),
				"a datagram of IPv6 to everyone":          send(typeIPv6, datagram6(own6, everyone6, 1, secretPort, data)),
				"a datagram of IPv6 for another":          send(typeIPv6, datagram6(own6, networktest.WorldAddress6, 1, secretPort, data)),
				"an echo of IPv6 to a stranger":           send(typeIPv6, ipv6(stranger6, pod6, icmp6, echo6)),
				"an advertisement of a router":            send(typeIPv6, ipv6("fe80::7", everyone6, icmp6, advert)),
				"a question of IPv6 for the pod":          send(typeIPv6, discovery(own6, pod6, solicitation, pod6, sourceOption, from)),
				"a message of a protocol for cables":      send(0x88cc, data),
				"a message of a protocol that is unknown": send(0x1234, data),
			} {
				name = fmt.Sprintf("%s to %s from %s", name, group(n), from)
				all = append(all, frameCase{name, frame}, frameCase{name + " in a frame of priority", tagged(frame, 0)}, frameCase{name + " with the tag of a network", tagged(frame, 5)})
			}
		}
	}
	return all
}

// Neither the pod nor anyone else gets a frame to a group that bridges do not forward, whatever is in it.
// A policy of the network knows the pod by its addresses: what else leaves the pod passes it.
func TestAttackAGuestSendsToTheGroupsOfBridges(t *testing.T) {
	for _, tt := range []struct {
		name                     string
		binding                  vmi.InterfaceBinding
		mac, own, own6, to4, to6 string
		marker                   []byte
	}{
		{"masquerade", masquerade, routedMAC, routed4, routed6, gateway4, gateway6,
			toGateway(typeIPv4, ipv4(routed4, networktest.WorldAddress, 17, 0, udp(1, 2, nil)))},
		{"bridge", bridge, networktest.PodMAC, networktest.PodAddress, networktest.PodAddress6, networktest.PodAddress, networktest.PodAddress6,
			fromGuest(typeIPv4, ipv4(networktest.PodAddress, networktest.NodeAddress, 17, 0, udp(1, 2, nil)))},
	} {
		for _, policy := range []bool{false, true} {
			name := tt.name
			if policy {
				name += " with a policy"
			}
			t.Run(name, func(t *testing.T) {
				pod, node := networktest.DualPod(t)
				v := instance(tt.binding)
				v.Spec.Domain.Devices.Interfaces[0].Ports = []vmi.Port{{Port: 80}}
				cfg := bind(t, pod, v)
				if policy { // as for egress: []
					networktest.Run(t, node, testenv.Program(t, "nft"), fmt.Sprintf(`add table inet egress; add chain inet egress c { type filter hook prerouting priority 0; };
						add rule inet egress c iifname podlink ip saddr %s drop; add rule inet egress c iifname podlink ip6 saddr %s udp dport %d drop`,
						networktest.PodAddress, networktest.PodAddress6, secretPort))
				}
				inPod, inNode := inbox(t, pod, "[::]"), inbox(t, node, "[::]")
				s := newSender(t, pod, cfg.Attachments[0], tt.marker)
				atNode, atTap := networktest.Watch(t, node, "podlink"), networktest.Watch(t, pod, "tap0")
				if tt.name == "bridge" {
					s.open(t, atNode)
				} else {
					s.open(t, networktest.Watch(t, pod, "k6t-eth0"))
				}
				data := []byte("<for the groups>")
				known := map[string][]byte{}
				for n, f := range toGroups(tt.mac, tt.own, tt.own6, tt.to4, tt.to6, data) {
					known[f.name] = s.send(t, f.frame)
					if n%20 == 0 { // what captures must keep up
						require.True(t, atTap.Await(s.send(t, s.marker)))
					}
				}
				require.True(t, atTap.Await(s.send(t, s.marker)))
				for name, bytes := range known {
					require.True(t, atTap.Has(bytes), name)
					require.False(t, atNode.Has(bytes), name)
				}
				require.False(t, inPod.Has(data))
				require.False(t, atNode.Has(data), "also in no answer of the pod")
				require.False(t, inNode.Has(data))
				require.False(t, atTap.Has([]byte{0, 1, 8, 0, 6, 4, 0, 2}), "the pod answers by ARP")
				require.NotContains(t, networktest.IP(t, pod, "-6 route show"), "proto ra")
				require.NotContains(t, networktest.IP(t, pod, "addr show"), "2001:db8:66:")
				require.Empty(t, networktest.IP(t, pod, "neigh show dev tap0"))
			})
		}
	}
}

// A tap device that is the port of no bridge leads nowhere, whatever took it out of its bridge.
func TestAttackAGuestWhoseTapDeviceIsOnNoBridgeReachesNothing(t *testing.T) {
	for name, binding := range map[string]vmi.InterfaceBinding{"masquerade": masquerade, "bridge": bridge} {
		t.Run(name, func(t *testing.T) {
			pod, node := networktest.DualPod(t)
			cfg := bind(t, pod, instance(binding))
			mac, own, own6, to := routedMAC, routed4, routed6, gateway4
			if name == "bridge" {
				mac, own, own6, to = networktest.PodMAC, networktest.PodAddress, networktest.PodAddress6, "169.254.75.10"
			}
			networktest.IP(t, pod, "link set tap0 nomaster")
			inPod, atNode, atTap := inbox(t, pod, "[::]"), networktest.Watch(t, node, "podlink"), networktest.Watch(t, pod, "tap0")
			s := newSender(t, pod, cfg.Attachments[0], nil)
			data := []byte("<by no bridge>")
			send := func(kind uint16, payload []byte) []byte {
				return s.send(t, ethernet(broadcast, mac, kind, payload))
			}
			require.Eventually(t, func() bool { return atTap.Has(send(typeIPv4, ipv4(own, to, 17, 0, udp(1, secretPort, data)))) }, time.Minute, 10*time.Millisecond)
			for _, from := range []string{own, "198.51.100.7", "0.0.0.0"} {
				for _, to := range []string{to, "255.255.255.255", "224.0.0.1", networktest.PodAddress} {
					send(typeIPv4, ipv4(from, to, 17, 0, udp(1, secretPort, data)))
					send(typeARP, arp(1, mac, from, to))
				}
			}
			for _, to := range []string{everyone6, gateway6, networktest.PodAddress6} {
				send(typeIPv6, datagram6(own6, to, 1, secretPort, data))
				send(typeIPv6, discovery(own6, to, solicitation, networktest.PodAddress6, sourceOption, mac))
			}
			require.True(t, atTap.Await(send(typeIPv6, datagram6(own6, everyone6, 1, secretPort, data))))
			require.False(t, inPod.Has(data))
			require.False(t, atNode.Has(data))
			require.False(t, atTap.Has([]byte{0, 1, 8, 0, 6, 4, 0, 2}), "the pod answers by ARP")
		})
	}
}
