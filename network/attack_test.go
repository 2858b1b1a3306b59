package network_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/network/link"
	"github.com/podvisor/podvisor/internal/network/networktest"
	"github.com/podvisor/podvisor/internal/network/nft"
	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
)

// The addresses of another pod, and of the router.
const (
	victimMAC  = "0a:58:0a:f4:00:07"
	victim     = "10.244.0.7"
	victim6    = "fd00:244::7"
	nodeMAC    = "0a:58:0a:f4:00:01"
	router6    = "fe80::858:aff:fef4:1"
	everyone6  = "ff02::1"
	everyMAC6  = "33:33:00:00:00:01"
	ownLocal   = "fe80::858:aff:fef4:5"
	ownDerived = "2001:db8:9::858:aff:fef4:5"
)

// frameCase is a frame of a guest.
type frameCase struct {
	name  string
	frame []byte
}

// fromGuest is a frame to everyone from the guest of a bridged pod.
func fromGuest(kind uint16, payload []byte) []byte {
	return ethernet(broadcast, networktest.PodMAC, kind, payload)
}

const (
	typeIPv4, typeARP, typeIPv6, typeVLAN, typeQinQ = 0x0800, 0x0806, 0x86dd, 0x8100, 0x88a8
	solicitation, advertisement, routers, routing   = 135, 136, 133, 134
	sourceOption, targetOption                      = 1, 2
	client, server, client6, server6                = 68, 67, 546, 547
)

// bridgedOwn are frames that a bridged guest needs.
func bridgedOwn() []frameCase {
	mac, own, own6 := networktest.PodMAC, networktest.PodAddress, networktest.PodAddress6
	echo := message(own6, everyone6, 128, "", 0, "")
	report := append([]byte{143, 0, 0, 0, 0, 0, 0, 1}, append([]byte{4, 0, 0, 0}, ip("ff02::1:fff4:5")...)...)
	return []frameCase{
		{"a renewal by DHCP", fromGuest(typeIPv4, ipv4(own, networktest.NodeAddress, 17, 0, udp(client, server, dhcpMessage(1, mac))))},
		{"a question for the gateway by ARP", fromGuest(typeARP, arp(1, mac, own, networktest.NodeAddress))},
		{"an announcement of its address by ARP", fromGuest(typeARP, arp(1, mac, own, own))},
		{"an answer by ARP", fromGuest(typeARP, arp(2, mac, own, networktest.NodeAddress))},
		{"a probe for its address by ARP", fromGuest(typeARP, arp(1, mac, "0.0.0.0", own))},
		{"a datagram of IPv4", fromGuest(typeIPv4, ipv4(own, networktest.NodeAddress, 17, 0, udp(1, 2, nil)))},
		{"a datagram to a group", fromGuest(typeIPv4, ipv4(own, "224.0.0.251", 17, 0, udp(5353, 5353, nil)))},
		{"the first fragment of a packet of IPv4", fromGuest(typeIPv4, ipv4(own, networktest.NodeAddress, 17, 0x2000, udp(1, 2, make([]byte, 8))))},
		{"the last fragment of a packet of IPv4", fromGuest(typeIPv4, ipv4(own, networktest.NodeAddress, 17, 2, []byte{0, server, 0, client, 0, 0, 0, 0}))},
		{"a probe for its address by IPv6", fromGuest(typeIPv6, discovery("::", "ff02::1:ff00:5", solicitation, own6, 0, ""))},
		{"a probe with a nonce", fromGuest(typeIPv6, discovery("::", "ff02::1:ff00:5", solicitation, own6, 14, "01:02:03:04:05:06"))},
		{"a probe for its link-local address", fromGuest(typeIPv6, discovery("::", "ff02::1:fff4:5", solicitation, ownLocal, 0, ""))},
		{"a question for the gateway by IPv6", fromGuest(typeIPv6, discovery(own6, "ff02::1:ff00:1", solicitation, networktest.NodeAddress6, sourceOption, mac))},
		{"a question from its link-local address", fromGuest(typeIPv6, discovery(ownLocal, "ff02::1:ff00:1", solicitation, router6, sourceOption, mac))},
		{"a question whether a neighbour is reachable", fromGuest(typeIPv6, discovery(own6, networktest.NodeAddress6, solicitation, networktest.NodeAddress6, 0, ""))},
		{"an announcement of its address by IPv6", fromGuest(typeIPv6, discovery(own6, everyone6, advertisement, own6, targetOption, mac))},
		{"an announcement of its link-local address", fromGuest(typeIPv6, discovery(ownLocal, everyone6, advertisement, ownLocal, targetOption, mac))},
		{"an answer about its address without its MAC", fromGuest(typeIPv6, discovery(own6, networktest.NodeAddress6, advertisement, own6, 0, ""))},
		{"a question for routers", fromGuest(typeIPv6, discovery(ownLocal, "ff02::2", routers, "", sourceOption, mac))},
		{"a question for routers without an address", fromGuest(typeIPv6, discovery("::", "ff02::2", routers, "", 0, ""))},
		{"a report of its groups before it has an address", fromGuest(typeIPv6, ipv6("::", "ff02::16", hopByHop, append([]byte{icmp6, 0, 5, 2, 0, 0, 1, 0}, summed("::", "ff02::16", icmp6, 2, report)...)))},
		{"a datagram of IPv6", fromGuest(typeIPv6, datagram6(own6, everyone6, 1, 2, nil))},
		{"a datagram from its link-local address", fromGuest(typeIPv6, datagram6(ownLocal, everyone6, 1, 2, nil))},
		{"a report of a group by IGMP", fromGuest(typeIPv4, ipv4(own, "224.0.0.251", 2, 0, igmp(0x16, "224.0.0.251")))},
		{"the end of it", fromGuest(typeIPv4, ipv4(own, "224.0.0.2", 2, 0, igmp(0x17, "224.0.0.251")))},
		{"a report of all groups by IGMP", fromGuest(typeIPv4, ipv4(own, "224.0.0.22", 2, 0, igmp(0x22, "224.0.0.251")))},
		{"a report of a group by IPv6", fromGuest(typeIPv6, ipv6(ownLocal, everyone6, hopByHop, before(icmp6, message(ownLocal, everyone6, 131, everyone6, 0, ""))))},
		{"the end of it by IPv6", fromGuest(typeIPv6, ipv6(ownLocal, everyone6, hopByHop, before(icmp6, message(ownLocal, everyone6, 132, everyone6, 0, ""))))},
		{"an echo of IPv4", fromGuest(typeIPv4, ipv4(own, networktest.NodeAddress, 1, 0, icmp(8)))},
		{"a port that is closed", fromGuest(typeIPv4, ipv4(own, networktest.NodeAddress, 1, 0, icmp(3)))},
		{"a segment of TCP", fromGuest(typeIPv4, ipv4(own, networktest.NodeAddress, 6, 0, make([]byte, 20)))},
		{"a segment of TCP by IPv6", fromGuest(typeIPv6, ipv6(own6, networktest.NodeAddress6, 6, make([]byte, 20)))},
		{"a segment of TCP behind options", fromGuest(typeIPv6, ipv6(own6, networktest.NodeAddress6, options, before(6, make([]byte, 20))))},
		{"a request for an address by DHCPv6", fromGuest(typeIPv6, datagram6(ownLocal, "ff02::1:2", client6, server6, nil))},
		{"an echo of IPv6", fromGuest(typeIPv6, ipv6(own6, everyone6, icmp6, echo))},
		{"the first fragment of an echo", fromGuest(typeIPv6, ipv6(own6, everyone6, fragments, fragment(icmp6, 0, true, echo)))},
		{"the last fragment of an echo", fromGuest(typeIPv6, ipv6(own6, everyone6, fragments, fragment(icmp6, 1, false, []byte{advertisement, 0, 0, 0, 0, 0, 0, 0})))},
	}
}

// bridgedForeign are frames by which a bridged guest takes what is not its own.
func bridgedForeign() []frameCase {
	mac, own, own6 := networktest.PodMAC, networktest.PodAddress, networktest.PodAddress6
	claim := arp(1, mac, victim, victim)
	claim6 := message(own6, everyone6, advertisement, victim6, targetOption, mac)
	odd := arp(1, mac, own, own)
	odd[4] = 8
	return []frameCase{
		{"a frame from another MAC", ethernet(broadcast, victimMAC, typeIPv4, ipv4(own, networktest.NodeAddress, 17, 0, udp(1, 2, nil)))},
		{"ARP from another MAC", ethernet(broadcast, victimMAC, typeARP, arp(1, victimMAC, victim, victim))},
		{"an announcement of another's address", fromGuest(typeARP, claim)},
		{"an answer in another's name", fromGuest(typeARP, arp(2, mac, networktest.NodeAddress, victim))},
		{"an answer that gives its address another's MAC", fromGuest(typeARP, arp(2, victimMAC, own, victim))},
		{"a probe for another's address", fromGuest(typeARP, arp(1, mac, "0.0.0.0", victim))},
		{"half of a message of ARP", fromGuest(typeARP, claim[:16])},
		{"ARP of hardware addresses of 8 bytes", fromGuest(typeARP, odd)},
		{"the announcement in a tagged frame", fromGuest(typeVLAN, append([]byte{0, 0, 8, 6}, claim...))},
		{"the announcement in a frame with the tag of a network", fromGuest(typeVLAN, append([]byte{0, 1, 8, 6}, claim...))},
		{"the announcement in a frame with two tags", fromGuest(typeQinQ, append([]byte{0, 1, 0x81, 0, 0, 0, 8, 6}, claim...))},
		{"a datagram of its own in a tagged frame", fromGuest(typeVLAN, append([]byte{0, 0, 8, 0}, ipv4(own, networktest.NodeAddress, 17, 0, udp(1, 2, nil))...))},
		{"the announcement in a frame of 802.3", fromGuest(uint16(8+len(claim)), append([]byte{0xaa, 0xaa, 3, 0, 0, 0, 8, 6}, claim...))},
		{"the announcement by RARP", fromGuest(0x8035, claim)},
		{"a message to bridges", ethernet("01:80:c2:00:00:00", mac, 38, append([]byte{0x42, 0x42, 3}, make([]byte, 35)...))},
		{"a session of PPPoE", fromGuest(0x8863, []byte{0x11, 9, 0, 0, 0, 0})},
		{"a packet of MPLS", fromGuest(0x8847, []byte{0, 0, 1, 64})},
		{"a datagram from another's address", fromGuest(typeIPv4, ipv4(victim, networktest.NodeAddress, 17, 0, udp(1, 2, nil)))},
		{"a fragment from another's address", fromGuest(typeIPv4, ipv4(victim, networktest.NodeAddress, 17, 2, make([]byte, 8)))},
		{"a datagram from no address", fromGuest(typeIPv4, ipv4("0.0.0.0", "255.255.255.255", 17, 0, udp(1, 2, nil)))},
		{"a request of DHCP for another's MAC", fromGuest(typeIPv4, ipv4("0.0.0.0", "255.255.255.255", 17, 0, udp(client, server, dhcpMessage(1, victimMAC))))},
		{"an offer of DHCP", fromGuest(typeIPv4, ipv4(own, "255.255.255.255", 17, 0, udp(server, client, dhcpMessage(2, victimMAC))))},
		{"an offer of DHCP from another port", fromGuest(typeIPv4, ipv4(own, "255.255.255.255", 17, 0, udp(1067, client, dhcpMessage(2, victimMAC))))},
		// Its launcher answers it, and no policy is for a sender without an address.
		{"a request for an address by DHCP", fromGuest(typeIPv4, ipv4("0.0.0.0", "255.255.255.255", 17, 0, udp(client, server, append(dhcpMessage(1, mac), "a secret"...))))},
		{"an answer of DHCP to a relay", fromGuest(typeIPv4, ipv4(own, networktest.NodeAddress, 17, 0, udp(1067, server, dhcpMessage(2, victimMAC))))},
		{"the first fragment of such an answer", fromGuest(typeIPv4, ipv4(own, networktest.NodeAddress, 17, 0x2000, udp(1067, server, nil)))},
		{"an answer of DHCPv6 to a relay", fromGuest(typeIPv6, datagram6(ownLocal, "ff02::1:2", 1, server6, []byte{13, 0, 0, 0}))},
		{"an answer of DHCPv6 to the port of servers", fromGuest(typeIPv6, datagram6(own6, "ff02::1:2", 1, server6, []byte{7, 0, 0, 0}))},
		{"the first fragment of such an answer of DHCPv6", fromGuest(typeIPv6, ipv6(own6, "ff02::1:2", fragments, fragment(udp6, 0, true, udp(1, server6, nil))))},
		{"a datagram from another's address of IPv6", fromGuest(typeIPv6, datagram6(victim6, everyone6, 1, 2, nil))},
		{"a datagram from a link-local address that its MAC does not make", fromGuest(typeIPv6, datagram6(router6, everyone6, 1, 2, nil))},
		{"an announcement of another's address of IPv6", fromGuest(typeIPv6, ipv6(own6, everyone6, icmp6, claim6))},
		{"an announcement in another's name", fromGuest(typeIPv6, discovery(victim6, everyone6, advertisement, victim6, targetOption, mac))},
		{"an announcement of the router's address", fromGuest(typeIPv6, discovery(ownLocal, everyone6, advertisement, router6, targetOption, mac))},
		{"an announcement that gives its address another's MAC", fromGuest(typeIPv6, discovery(own6, everyone6, advertisement, own6, targetOption, victimMAC))},
		{"a question that gives its address another's MAC", fromGuest(typeIPv6, discovery(own6, "ff02::1:ff00:1", solicitation, networktest.NodeAddress6, sourceOption, victimMAC))},
		{"a question in another's name", fromGuest(typeIPv6, discovery(victim6, "ff02::1:ff00:1", solicitation, networktest.NodeAddress6, sourceOption, mac))},
		{"a probe for another's address of IPv6", fromGuest(typeIPv6, discovery("::", "ff02::1:ff00:7", solicitation, victim6, 0, ""))},
		{"an announcement behind other headers", fromGuest(typeIPv6, ipv6(own6, everyone6, options, before(icmp6, claim6)))},
		{"an announcement of its own behind other headers", fromGuest(typeIPv6, ipv6(own6, everyone6, options, before(icmp6, message(own6, everyone6, advertisement, own6, targetOption, mac))))},
		{"an announcement in a fragment", fromGuest(typeIPv6, ipv6(own6, everyone6, fragments, fragment(icmp6, 0, true, claim6)))},
		{"an announcement that begins in the second fragment", fromGuest(typeIPv6, ipv6(own6, everyone6, fragments, fragment(options, 0, true, before(icmp6, nil))))},
		{"the second fragment of that", fromGuest(typeIPv6, ipv6(own6, everyone6, fragments, fragment(options, 1, false, claim6)))},
		{"half of an announcement", fromGuest(typeIPv6, ipv6(own6, everyone6, icmp6, claim6[:12]))},
		{"an advertisement of a router", fromGuest(typeIPv6, discovery(ownLocal, everyone6, routing, "", sourceOption, mac))},
		{"an advertisement of a router behind other headers", fromGuest(typeIPv6, ipv6(ownLocal, everyone6, hopByHop, before(icmp6, message(ownLocal, everyone6, routing, "", 0, ""))))},
		{"a question for routers that gives its address another's MAC", fromGuest(typeIPv6, discovery(ownLocal, "ff02::2", routers, "", sourceOption, victimMAC))},
		{"a redirection", fromGuest(typeIPv6, discovery(ownLocal, everyone6, 137, victim6, 0, ""))},
		{"an answer of DHCPv6", fromGuest(typeIPv6, datagram6(ownLocal, everyone6, server6, client6, nil))},
		{"a datagram from an address that its MAC makes in a network of its choice", fromGuest(typeIPv6, datagram6(ownDerived, everyone6, 1, 2, nil))},
		{"a segment of TCP from it", fromGuest(typeIPv6, ipv6(ownDerived, networktest.NodeAddress6, 6, make([]byte, 20)))},
		{"a fragment from it", fromGuest(typeIPv6, ipv6(ownDerived, networktest.NodeAddress6, fragments, fragment(6, 1, false, make([]byte, 8))))},
		{"an announcement of it", fromGuest(typeIPv6, discovery(own6, everyone6, advertisement, ownDerived, targetOption, mac))},
		{"a probe for it", fromGuest(typeIPv6, discovery("::", everyone6, solicitation, ownDerived, 0, ""))},
		{"a segment of TCP from another's address", fromGuest(typeIPv4, ipv4(victim, networktest.NodeAddress, 6, 0, make([]byte, 20)))},
	}
}

// icmp is a message of ICMP.
func icmp(kind byte) []byte {
	b := append([]byte{kind, 0, 0, 0, 0, 0, 0, 0}, make([]byte, 28)...)
	binary.BigEndian.PutUint16(b[2:], sum(b))
	return b
}

// igmp is a message of IGMP about a group.
func igmp(kind byte, group string) []byte {
	b := append([]byte{kind, 10, 0, 0}, ip(group)...)
	if kind == 0x22 {
		b = append([]byte{kind, 0, 0, 0, 0, 0, 0, 1, 4, 0, 0, 0}, ip(group)...)
	}
	binary.BigEndian.PutUint16(b[2:], sum(b))
	return b
}

// ofRouters are frames by which a guest with these addresses is a router for others, or
// hides what it sends: they come out of a pod without rules.
func ofRouters(to, mac, own, own6, local string) []frameCase {
	send := func(kind uint16, payload []byte) []byte { return ethernet(to, mac, kind, payload) }
	var all []frameCase
	add := func(name string, frame []byte) { all = append(all, frameCase{name, frame}) }
	for _, kind := range []byte{5, 9} {
		add(fmt.Sprintf("ICMP %d", kind), send(typeIPv4, ipv4(own, "224.0.0.1", 1, 0, icmp(kind))))
		add(fmt.Sprintf("the first fragment of ICMP %d", kind), send(typeIPv4, ipv4(own, "224.0.0.1", 1, 0x2000, icmp(kind)[:8])))
	}
	// A question of each version, those of DVMRP and PIM, and of routers of groups.
	for _, kind := range []byte{0x11, 0x13, 0x14, 0x15, 0x30, 0x31, 0x32} {
		add(fmt.Sprintf("IGMP %#x", kind), send(typeIPv4, ipv4(own, "224.0.0.1", 2, 0, igmp(kind, "224.0.0.251"))))
	}
	for _, kind := range []byte{130, 134, 137, 138, 141, 142, 149, 151, 153, 155} {
		m := message(local, everyone6, kind, everyone6, 0, "")
		add(fmt.Sprintf("ICMPv6 %d", kind), send(typeIPv6, ipv6(local, everyone6, icmp6, m)))
		add(fmt.Sprintf("ICMPv6 %d behind options", kind), send(typeIPv6, ipv6(local, everyone6, hopByHop, before(icmp6, m))))
	}
	for _, protocol := range []byte{88, 89, 103, 112} {
		add(fmt.Sprintf("protocol %d", protocol), send(typeIPv4, ipv4(own, "224.0.0.18", protocol, 0, make([]byte, 20))))
		add(fmt.Sprintf("a fragment of protocol %d", protocol), send(typeIPv4, ipv4(own, "224.0.0.18", protocol, 1, make([]byte, 20))))
		add(fmt.Sprintf("protocol %d by IPv6", protocol), send(typeIPv6, ipv6(own6, "ff02::12", protocol, make([]byte, 20))))
		add(fmt.Sprintf("protocol %d behind options", protocol), send(typeIPv6, ipv6(own6, "ff02::12", options, before(protocol, make([]byte, 20)))))
	}
	claim := message(own6, everyone6, advertisement, victim6, targetOption, mac)
	for _, header := range []byte{50, 51, 135, 139, 140, 253, 254} {
		behind := before(icmp6, claim)
		add(fmt.Sprintf("an announcement behind header %d", header), send(typeIPv6, ipv6(own6, everyone6, header, behind)))
		add(fmt.Sprintf("an announcement behind options and header %d", header), send(typeIPv6, ipv6(own6, everyone6, options, before(header, behind))))
		add(fmt.Sprintf("an announcement in a fragment behind header %d", header), send(typeIPv6, ipv6(own6, everyone6, fragments, fragment(header, 0, true, behind))))
	}
	return all
}

// unfiltered binds the interfaces of a VMI without the rules.
func unfiltered(t *testing.T, pod *os.File, v *vmi.VirtualMachineInstance) network.Config {
	t.Helper()
	s, err := link.Observe(t.Context(), pod)
	require.NoError(t, err)
	cfg, err := network.Plan(network.Input{Instance: v, State: s, Owner: network.Owner{UID: 107, GID: 107}, Links: networktest.Links(v)})
	require.NoError(t, err)
	require.NoError(t, link.Apply(t.Context(), pod, cfg))
	return cfg
}

// sender sends frames as a guest, each one different.
type sender struct {
	tap    *os.File
	count  *uint16
	marker []byte
}

func newSender(t *testing.T, pod *os.File, a network.Attachment, marker []byte) sender {
	t.Helper()
	return sender{networktest.OpenTap(t, pod, a.Tap), new(uint16), marker}
}

// send returns the bytes by which the frame is known.
func (s sender) send(t *testing.T, frame []byte) []byte {
	t.Helper()
	*s.count++
	frame, known := numbered(frame, *s.count)
	_, err := s.tap.Write(append(make([]byte, networktest.HeaderLength), frame...))
	require.NoError(t, err)
	return known
}

// open sends the marker until one of those that were sent has come: the bridge forwards
// when it has seen that the device is open.
func (s sender) open(t *testing.T, c *networktest.Capture) {
	t.Helper()
	var sent [][]byte
	require.Eventually(t, func() bool {
		sent = append(sent, s.send(t, s.marker))
		return slices.ContainsFunc(sent, c.Has)
	}, time.Minute, 10*time.Millisecond)
}

// numbered gives a frame a number, by which it is known: packets in their header,
// since a bridge cuts off what follows them, and others at the end.
func numbered(frame []byte, n uint16) (numbered, known []byte) {
	frame = bytes.Clone(frame)
	p := frame[14:]
	switch binary.BigEndian.Uint16(frame[12:]) {
	case typeIPv4:
		binary.BigEndian.PutUint16(p[4:], n)
		binary.BigEndian.PutUint16(p[10:], 0)
		binary.BigEndian.PutUint16(p[10:], sum(p[:20]))
		return frame, p
	case typeIPv6:
		binary.BigEndian.PutUint16(p[2:], n)
		return frame, p
	default:
		known = fmt.Appendf(nil, "<frame %d>", n)
		// Short frames would get bytes of their own there.
		return append(append(frame, make([]byte, max(0, 60-len(frame)))...), known...), known
	}
}

// arrive sends frames and checks which of them come out by the captured link.
func (s sender) arrive(t *testing.T, c *networktest.Capture, cases []frameCase, want bool) {
	t.Helper()
	s.open(t, c)
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			known := s.send(t, tt.frame)
			if want {
				require.True(t, c.Await(known))
				return
			}
			// What is sent after it has come.
			require.True(t, c.Await(s.send(t, s.marker)))
			require.False(t, c.Has(known))
		})
	}
}

func TestAttackABridgedGuestSendsAsAnother(t *testing.T) {
	own := fromGuest(typeARP, arp(1, networktest.PodMAC, networktest.PodAddress, networktest.NodeAddress))
	routing := ofRouters(broadcast, networktest.PodMAC, networktest.PodAddress, networktest.PodAddress6, ownLocal)
	t.Run("without the rules", func(t *testing.T) {
		pod, node := networktest.DualPod(t)
		cfg := unfiltered(t, pod, instance(bridge))
		s, c := newSender(t, pod, cfg.Attachments[0], own), networktest.Watch(t, node, "podlink")
		s.arrive(t, c, bridgedForeign(), true)
		s.arrive(t, c, routing, true)
	})
	pod, node := networktest.DualPod(t)
	cfg := bind(t, pod, instance(bridge))
	s, c := newSender(t, pod, cfg.Attachments[0], own), networktest.Watch(t, node, "podlink")
	s.arrive(t, c, bridgedForeign(), false)
	s.arrive(t, c, routing, false)
	require.NoError(t, nft.Apply(pod, cfg))
	t.Run("what it needs", func(t *testing.T) { s.arrive(t, c, bridgedOwn(), true) })
	require.NotContains(t, networktest.IP(t, node, "neigh show "+victim), networktest.PodMAC)
	require.NotContains(t, networktest.IP(t, node, "neigh show "+victim6), networktest.PodMAC)
}

// Of a routed guest, what counts is what its pod gets.
const (
	routedMAC  = "02:29:ef:a9:cb:99"
	routed4    = "10.0.2.2"
	routed6    = "fd10:0:2::2"
	gateway4   = "10.0.2.1"
	gateway6   = "fd10:0:2::1"
	gatewayMAC = "02:00:00:00:00:00"
	routedOwn6 = "fe80::29:efff:fea9:cb99"
)

func toGateway(kind uint16, payload []byte) []byte {
	return ethernet(gatewayMAC, routedMAC, kind, payload)
}

func TestAttackARoutedGuestSendsAsAnother(t *testing.T) {
	own := toGateway(typeARP, arp(1, routedMAC, routed4, gateway4))
	foreign := []frameCase{
		{"a frame from another MAC", ethernet(gatewayMAC, victimMAC, typeIPv4, ipv4(routed4, networktest.WorldAddress, 17, 0, udp(1, 2, nil)))},
		{"an announcement of the gateway's address", toGateway(typeARP, arp(1, routedMAC, gateway4, gateway4))},
		{"an announcement in a tagged frame", toGateway(typeVLAN, append([]byte{0, 0, 8, 6}, arp(1, routedMAC, gateway4, gateway4)...))},
		{"an announcement of the gateway's address of IPv6", toGateway(typeIPv6, discovery(routed6, everyone6, advertisement, gateway6, targetOption, routedMAC))},
		{"an advertisement of a router", toGateway(typeIPv6, discovery(routedOwn6, everyone6, routing, "", sourceOption, routedMAC))},
		{"an offer of DHCP", toGateway(typeIPv4, ipv4(routed4, "255.255.255.255", 17, 0, udp(server, client, dhcpMessage(2, routedMAC))))},
	}
	sources := []frameCase{
		{"a datagram from another address of its network", toGateway(typeIPv4, ipv4("10.0.2.3", networktest.WorldAddress, 17, 0, udp(1, 2, nil)))},
		{"a datagram from another pod", toGateway(typeIPv4, ipv4(victim, networktest.WorldAddress, 17, 0, udp(1, 2, nil)))},
		{"a datagram from a stranger", toGateway(typeIPv4, ipv4("198.51.100.7", networktest.WorldAddress, 17, 0, udp(1, 2, nil)))},
		{"a datagram from another pod by IPv6", toGateway(typeIPv6, datagram6(victim6, networktest.WorldAddress6, 1, 2, nil))},
		{"a datagram from an address that its MAC makes", toGateway(typeIPv6, datagram6(ownDerived, networktest.WorldAddress6, 1, 2, nil))},
	}
	needed := []frameCase{
		{"a request for an address by DHCP", ethernet(broadcast, routedMAC, typeIPv4, ipv4("0.0.0.0", "255.255.255.255", 17, 0, udp(client, server, dhcpMessage(1, routedMAC))))},
		{"a question for the gateway by ARP", own},
		{"a question for the gateway by IPv6", toGateway(typeIPv6, discovery(routed6, "ff02::1:ff00:1", solicitation, gateway6, sourceOption, routedMAC))},
		{"a probe for its address by IPv6", toGateway(typeIPv6, discovery("::", "ff02::1:ff00:2", solicitation, routed6, 0, ""))},
		{"a question from a link-local address of its choice", toGateway(typeIPv6, discovery("fe80::1234", "ff02::1:ff00:1", solicitation, gateway6, sourceOption, routedMAC))},
		{"a probe for a link-local address of its choice", toGateway(typeIPv6, discovery("::", "ff02::1:ff00:1234", solicitation, "fe80::1234", 0, ""))},
		{"a question for routers from a link-local address of its choice", toGateway(typeIPv6, discovery("fe80::1234", "ff02::2", routers, "", sourceOption, routedMAC))},
		{"a datagram", toGateway(typeIPv4, ipv4(routed4, networktest.WorldAddress, 17, 0, udp(1, 2, nil)))},
		{"a datagram of IPv6", toGateway(typeIPv6, datagram6(routed6, networktest.WorldAddress6, 1, 2, nil))},
	}
	for _, rules := range []bool{false, true} {
		name, start := "without the rules", unfiltered
		if rules {
			name, start = "with the rules", bind
		}
		t.Run(name, func(t *testing.T) {
			pod, node := networktest.DualPod(t)
			cfg := start(t, pod, instance(masquerade))
			s, inPod := newSender(t, pod, cfg.Attachments[0], own), networktest.Watch(t, pod, "k6t-eth0")
			s.arrive(t, inPod, foreign, !rules)
			s.arrive(t, inPod, sources, !rules)
			s.arrive(t, inPod, ofRouters(gatewayMAC, routedMAC, routed4, routed6, routedOwn6), !rules)
			s.arrive(t, inPod, needed, true)
			// Beyond the pod, a packet is known by its data.
			atNode := networktest.Watch(t, node, "podlink")
			for n, tt := range sources {
				frame, data := bytes.Clone(tt.frame), fmt.Appendf(nil, "<packet %d>", n)
				if frame[12] == 0x08 {
					frame = toGateway(typeIPv4, ipv4(netip.AddrFrom4([4]byte(frame[26:30])).String(), networktest.WorldAddress, 17, 0, udp(1, 2, data)))
				} else {
					frame = toGateway(typeIPv6, datagram6(netip.AddrFrom16([16]byte(frame[22:38])).String(), networktest.WorldAddress6, 1, 2, data))
				}
				_, err := s.tap.Write(append(make([]byte, networktest.HeaderLength), frame...))
				require.NoError(t, err)
				if !rules {
					require.True(t, atNode.Await(data), tt.name)
				}
			}
			last := toGateway(typeIPv4, ipv4(routed4, networktest.WorldAddress, 17, 0, udp(3, 4, []byte("<the last packet>"))))
			_, err := s.tap.Write(append(make([]byte, networktest.HeaderLength), last...))
			require.NoError(t, err)
			require.True(t, atNode.Await([]byte("<the last packet>")))
			require.Equal(t, !rules, atNode.Has([]byte("<packet ")))
		})
	}
}

// reach is a datagram to the pod itself.
type reach struct {
	name string
	// frame makes a frame with the data.
	frame func(data []byte) []byte
}

const secretPort = 9999

// inbox takes datagrams in the namespace on the port for secrets. The capture has
// their data.
func inbox(t *testing.T, ns *os.File, address string) *networktest.Inbox {
	t.Helper()
	return networktest.Receive(t, ns, fmt.Sprintf("%s:%d", address, secretPort))
}

func TestAttackAGuestSendsToThePodItself(t *testing.T) {
	v4 := func(mac, from, to string) func([]byte) []byte {
		return func(data []byte) []byte {
			return ethernet(mac, map[bool]string{true: routedMAC, false: networktest.PodMAC}[from == routed4], typeIPv4, ipv4(from, to, 17, 0, udp(1, secretPort, data)))
		}
	}
	v6 := func(to string) func([]byte) []byte {
		return func(data []byte) []byte {
			return toGateway(typeIPv6, datagram6(routed6, to, 1, secretPort, data))
		}
	}
	fromLinkLocal := func(data []byte) []byte {
		return toGateway(typeIPv6, datagram6(routedOwn6, "fe80::ff:fe00:0", 1, secretPort, data))
	}
	bridgeMAC := network.Interface{Instance: instance(bridge)}.LinkMAC("k6t-eth0")
	tapMAC := network.Interface{Instance: instance(bridge)}.LinkMAC("tap0")
	for _, tt := range []struct {
		name    string
		binding vmi.InterfaceBinding
		listen  []string
		marker  []byte
		reach   []reach
	}{
		{
			"masquerade", masquerade, []string{"[::]"},
			toGateway(typeARP, arp(1, routedMAC, routed4, gateway4)),
			[]reach{
				{"the loopback", v4(gatewayMAC, routed4, "127.0.0.1")},
				{"another address of the loopback", v4(gatewayMAC, routed4, "127.8.8.8")},
				{"the gateway", v4(gatewayMAC, routed4, gateway4)},
				{"everyone in its network", v4(broadcast, routed4, "10.0.2.255")},
				{"everyone on the link", v4(broadcast, routed4, "255.255.255.255")},
				{"everyone in its pod's network", v4(gatewayMAC, routed4, "10.244.0.255")},
				{"any router of its pod's network", v6("fd00:244::")},
				{"the gateway of IPv6", v6(gateway6)},
				{"the gateway's link-local address", fromLinkLocal},
				{"the group of all hosts of IPv6", v6(everyone6)},
			},
		},
		{
			"bridge", bridge, []string{"0.0.0.0"},
			fromGuest(typeARP, arp(1, networktest.PodMAC, networktest.PodAddress, networktest.NodeAddress)),
			[]reach{
				{"the server of addresses", v4(bridgeMAC, networktest.PodAddress, "169.254.75.10")},
				{"the server of addresses by another MAC", v4(tapMAC, networktest.PodAddress, "169.254.75.10")},
				{"everyone on the link", v4(broadcast, networktest.PodAddress, "255.255.255.255")},
			},
		},
	} {
		for _, rules := range []bool{false, true} {
			name, start := "without the rules", unfiltered
			if rules {
				name, start = "with the rules", bind
			}
			t.Run(tt.name+" "+name, func(t *testing.T) {
				pod, node := networktest.DualPod(t)
				v := instance(tt.binding)
				v.Spec.Domain.Devices.Interfaces[0].Ports = []vmi.Port{{Port: 80}}
				cfg := start(t, pod, v)
				var inboxes []*networktest.Inbox
				for _, a := range tt.listen {
					inboxes = append(inboxes, inbox(t, pod, a))
				}
				got := func(data []byte) bool {
					for _, i := range inboxes {
						if i.Has(data) {
							return true
						}
					}
					return false
				}
				s, c := newSender(t, pod, cfg.Attachments[0], tt.marker), networktest.Watch(t, pod, "k6t-eth0")
				s.open(t, c)
				for _, r := range tt.reach {
					data := []byte("for " + r.name + ".")
					s.send(t, r.frame(data))
					if !rules {
						require.Eventually(t, func() bool { s.send(t, r.frame(data)); return got(data) }, time.Minute, 10*time.Millisecond, r.name)
					}
				}
				require.True(t, c.Await(s.send(t, s.marker)))
				for _, r := range tt.reach {
					require.Equal(t, !rules, got([]byte("for "+r.name+".")), r.name)
				}
				if tt.name == "bridge" {
					answers := func() bool {
						_, err := networktest.Try(t, node, testenv.Program(t, "busybox"), "arping", "-c", "2", "-w", "2", "-I", "podlink", "169.254.75.10")
						return err == nil
					}
					if rules {
						require.False(t, answers(), "the pod of a bridged guest is on its network")
						return
					}
					// Nor is it, without the rules, for senders that it has no route to.
					networktest.In(t, pod, func() {
						require.NoError(t, os.WriteFile("/proc/sys/net/ipv4/conf/k6t-eth0/rp_filter", []byte("0"), 0))
					})
					require.Eventually(t, answers, time.Minute, 10*time.Millisecond, "without the rules it is")
				}
			})
		}
	}
}

func TestAttackAGuestOnANetworkWithoutAddresses(t *testing.T) {
	pod, _ := networktest.Pod(t)
	v := instance(bridge, bridge)
	lan := networktest.Attach(t, pod, networktest.Links(v)["lan1"], 1)
	cfg := bind(t, pod, v)
	require.Empty(t, cfg.Filters[1].Addresses)
	mac, other := networktest.SecondaryMAC(1), networktest.SecondaryMAC(9)
	all := func(kind uint16, payload []byte) []byte { return ethernet(broadcast, mac, kind, payload) }
	marker := all(typeARP, arp(1, mac, "192.0.2.7", "192.0.2.8"))
	s, c := newSender(t, pod, cfg.Attachments[1], marker), networktest.Watch(t, lan, "lan")
	s.arrive(t, c, []frameCase{
		{"an announcement of any address", marker},
		{"a datagram from any address", all(typeIPv4, ipv4("192.0.2.7", "255.255.255.255", 17, 0, udp(1, 2, nil)))},
		{"an announcement of any address of IPv6", all(typeIPv6, discovery("fe80::7", everyone6, advertisement, "2001:db8::7", targetOption, mac))},
		{"a probe for any address of IPv6", all(typeIPv6, discovery("::", everyone6, solicitation, "2001:db8::7", 0, ""))},
		{"a datagram from any address of IPv6", all(typeIPv6, datagram6("2001:db8::7", everyone6, 1, 2, nil))},
	}, true)
	s.arrive(t, c, []frameCase{
		{"a frame from another MAC", ethernet(broadcast, other, typeIPv4, ipv4("192.0.2.7", "255.255.255.255", 17, 0, udp(1, 2, nil)))},
		{"an announcement with another MAC", all(typeARP, arp(1, other, "192.0.2.7", "192.0.2.8"))},
		{"an announcement of IPv6 with another MAC", all(typeIPv6, discovery("fe80::7", everyone6, advertisement, "2001:db8::7", targetOption, other))},
		{"an advertisement of a router", all(typeIPv6, discovery("fe80::7", everyone6, routing, "", 0, ""))},
		{"an offer of DHCP", all(typeIPv4, ipv4("192.0.2.7", "255.255.255.255", 17, 0, udp(server, client, dhcpMessage(2, other))))},
		{"a message to bridges", ethernet(group(14), mac, typeIPv4, ipv4("192.0.2.7", "255.255.255.255", 17, 0, udp(1, 2, nil)))},
		{"a tagged frame", all(typeVLAN, append([]byte{0, 1, 8, 6}, arp(1, mac, "192.0.2.7", "192.0.2.8")...))},
	}, false)
	s.arrive(t, c, ofRouters(broadcast, mac, "192.0.2.7", "2001:db8::7", "fe80::7"), false)
}

// On the pod network, policies know the guest by the addresses of its pod: it gets nothing
// for others. A neighbour that wants it to have them sends to its MAC address.
func TestAttackABridgedGuestIsReachedAtNoOtherAddress(t *testing.T) {
	toGuest := func(kind uint16, payload []byte) []byte {
		return ethernet(networktest.PodMAC, nodeMAC, kind, payload)
	}
	foreign := []frameCase{
		{"a datagram for an address that its MAC makes", toGuest(typeIPv6, datagram6(networktest.NodeAddress6, ownDerived, 1, 2, nil))},
		{"a datagram for another's address of IPv6", toGuest(typeIPv6, datagram6(networktest.NodeAddress6, victim6, 1, 2, nil))},
		{"a datagram for everyone's MAC and another's address of IPv6", ethernet(everyMAC6, nodeMAC, typeIPv6, datagram6(networktest.NodeAddress6, victim6, 1, 2, nil))},
		{"a datagram for another's address", toGuest(typeIPv4, ipv4(networktest.NodeAddress, victim, 17, 0, udp(1, 2, nil)))},
		{"a datagram in a tagged frame", tagged(toGuest(typeIPv4, ipv4(networktest.NodeAddress, networktest.PodAddress, 17, 0, udp(1, 2, nil))), 5)},
	}
	own := []frameCase{
		{"a datagram", toGuest(typeIPv4, ipv4(networktest.NodeAddress, networktest.PodAddress, 17, 0, udp(1, 2, nil)))},
		{"a datagram of IPv6", toGuest(typeIPv6, datagram6(networktest.NodeAddress6, networktest.PodAddress6, 1, 2, nil))},
		{"a datagram for its link-local address", toGuest(typeIPv6, datagram6(router6, ownLocal, 1, 2, nil))},
		{"ARP", toGuest(typeARP, arp(2, nodeMAC, networktest.NodeAddress, networktest.PodAddress))},
		{"a datagram for a group", ethernet("01:00:5e:00:00:fb", nodeMAC, typeIPv4, ipv4(networktest.NodeAddress, "224.0.0.251", 17, 0, udp(1, 2, nil)))},
		{"a datagram for everyone", ethernet(broadcast, nodeMAC, typeIPv4, ipv4(networktest.NodeAddress, "255.255.255.255", 17, 0, udp(1, 2, nil)))},
		{"a datagram for everyone in the network", ethernet(broadcast, nodeMAC, typeIPv4, ipv4(networktest.NodeAddress, "10.244.0.255", 17, 0, udp(1, 2, nil)))},
		{"a datagram for a group of IPv6", ethernet(everyMAC6, nodeMAC, typeIPv6, datagram6(router6, everyone6, 1, 2, nil))},
	}
	for _, rules := range []bool{false, true} {
		name, start := "without the rules", unfiltered
		if rules {
			name, start = "with the rules", bind
		}
		t.Run(name, func(t *testing.T) {
			pod, node := networktest.DualPod(t)
			cfg := start(t, pod, instance(bridge))
			guest := networktest.Guest(t, pod, cfg.Attachments[0])
			s := sender{neighbour(t, node, "podlink"), new(uint16), own[0].frame}
			s.arrive(t, networktest.Watch(t, guest, "eth0"), own, true)
			s.arrive(t, networktest.Watch(t, guest, "eth0"), foreign, !rules)
		})
	}
}

// neighbour is a tap device on the segment of the link, which has a bridge of its own.
func neighbour(t *testing.T, ns *os.File, link string) *os.File {
	t.Helper()
	networktest.IP(t, ns, "link add segment type bridge mcast_snooping 0")
	networktest.IP(t, ns, "link set "+link+" master segment")
	networktest.IP(t, ns, "tuntap add neighbour mode tap vnet_hdr")
	networktest.IP(t, ns, "link set neighbour master segment up")
	networktest.IP(t, ns, "link set segment up")
	return networktest.OpenTap(t, ns, "neighbour")
}

// On a secondary network that gives addresses, a guest may also have those that its MAC
// makes, as routers there give them.
func TestABridgedGuestHasTheAddressesOfItsMACOnASecondaryNetwork(t *testing.T) {
	pod, _ := networktest.DualPod(t)
	v := instance(masquerade, bridge)
	lans := networktest.AttachAll(t, pod, v)
	cfg := bind(t, pod, v)
	mac := networktest.SecondaryMAC(1)
	id := cfg.Filters[1].InterfaceID().As16()
	derived := func(network string) string {
		a := netip.MustParseAddr(network).As16()
		copy(a[8:], id[8:])
		return netip.AddrFrom16(a).String()
	}
	marker := ethernet(broadcast, mac, typeARP, arp(1, mac, networktest.SecondaryAddress(1), networktest.SecondaryGateway(1)))
	s, c := newSender(t, pod, cfg.Attachments[1], marker), networktest.Watch(t, lans[0], "lan")
	s.arrive(t, c, []frameCase{
		{"its link-local address", ethernet(broadcast, mac, typeIPv6, datagram6(derived("fe80::"), everyone6, 1, 2, nil))},
		{"one of a network", ethernet(broadcast, mac, typeIPv6, datagram6(derived("2001:db8:9::"), everyone6, 1, 2, nil))},
		{"a probe for it", ethernet(broadcast, mac, typeIPv6, discovery("::", everyone6, solicitation, derived("2001:db8:9::"), 0, ""))},
	}, true)
	s.arrive(t, c, []frameCase{
		{"another", ethernet(broadcast, mac, typeIPv6, datagram6("2001:db8:9::7", everyone6, 1, 2, nil))},
	}, false)
}
