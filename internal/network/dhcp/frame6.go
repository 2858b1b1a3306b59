package dhcp

import (
	"encoding/binary"
	"net"
	"net/netip"

	"github.com/podvisor/podvisor/network"
)

// The numbers of protocols and ports, and the lengths of headers.
const (
	etherIPv6      = 0x86dd
	protocolUDP    = 17
	protocolICMP6  = 58
	portClient6    = 546
	portServer6    = 547
	routerSolicit  = 133
	routerAdvert   = 134
	etherHeader    = 14
	ipv6Header     = 40
	udpHeader      = 8
	solicitMinimum = 8
)

var (
	allNodes   = netip.MustParseAddr("ff02::1")
	allRouters = netip.MustParseAddr("ff02::2")
	allServers = netip.MustParseAddr("ff02::1:2")
)

// question is what a guest sent its router.
type question struct {
	from netip.Addr
	// dhcp is a message of DHCPv6. Nil: it is a router solicitation.
	dhcp []byte
}

// parse6 reads a frame. ok is false unless it is a question of the offer's guest.
func parse6(o network.Offer6, frame []byte) (q question, ok bool) {
	if len(frame) < etherHeader+ipv6Header || net.HardwareAddr(frame[6:12]).String() != o.MAC || binary.BigEndian.Uint16(frame[12:]) != etherIPv6 {
		return question{}, false
	}
	p := frame[etherHeader:]
	length := int(binary.BigEndian.Uint16(p[4:]))
	if p[0]>>4 != 6 || length > len(p)-ipv6Header {
		return question{}, false
	}
	from, to := netip.AddrFrom16([16]byte(p[8:24])), netip.AddrFrom16([16]byte(p[24:40]))
	payload := p[ipv6Header : ipv6Header+length]
	switch p[6] {
	case protocolICMP6:
		// What comes from another link has a lower hop limit (RFC 4861, 6.1.1).
		ok = length >= solicitMinimum && p[7] == 255 && payload[0] == routerSolicit && payload[1] == 0 &&
			(to == allRouters || to == o.Router) && (from.IsUnspecified() || from.IsLinkLocalUnicast())
		return question{from: from}, ok
	case protocolUDP:
		if length < udpHeader || binary.BigEndian.Uint16(payload[2:]) != portServer6 || to != allServers || !from.IsLinkLocalUnicast() {
			return question{}, false
		}
		n := int(binary.BigEndian.Uint16(payload[4:]))
		if n < udpHeader || n > length {
			return question{}, false
		}
		return question{from: from, dhcp: payload[udpHeader:n]}, true
	default:
		return question{}, false
	}
}

// frame6 is a frame from the router to the guest with a packet for the address to.
// The MAC address is the guest's also for groups (RFC 6085): no other port gets it.
func frame6(o network.Offer6, to netip.Addr, protocol byte, payload []byte) []byte {
	guest, _ := net.ParseMAC(o.MAC)
	router, _ := net.ParseMAC(o.RouterMAC)
	f := append(append([]byte{}, guest...), router...)
	f = binary.BigEndian.AppendUint16(f, etherIPv6)
	f = append(f, 6<<4, 0, 0, 0)
	f = binary.BigEndian.AppendUint16(f, uint16(len(payload)))
	f = append(f, protocol, 255)
	f = append(append(f, o.Router.AsSlice()...), to.AsSlice()...)
	return append(f, payload...)
}

// udp6 is a datagram of DHCPv6 from the router to the guest.
func udp6(o network.Offer6, to netip.Addr, message []byte) []byte {
	b := binary.BigEndian.AppendUint16(nil, portServer6)
	b = binary.BigEndian.AppendUint16(b, portClient6)
	b = binary.BigEndian.AppendUint16(b, uint16(udpHeader+len(message)))
	b = append(append(b, 0, 0), message...)
	sum := checksum(o.Router, to, protocolUDP, b)
	if sum == 0 {
		sum = 0xffff // which stands for 0, since 0 stands for none (RFC 8200, 8.1)
	}
	binary.BigEndian.PutUint16(b[6:], sum)
	return frame6(o, to, protocolUDP, b)
}

// checksum is that of a packet of IPv6 with this payload (RFC 8200, 8.1).
func checksum(from, to netip.Addr, protocol byte, payload []byte) uint16 {
	b := append(append([]byte{}, from.AsSlice()...), to.AsSlice()...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(payload)))
	b = append(append(b, 0, 0, 0, protocol), payload...)
	if len(b)%2 == 1 {
		b = append(b, 0)
	}
	var sum uint32
	for ; len(b) > 0; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
