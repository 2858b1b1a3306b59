package frame

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
)

// Frame is what a pod sends by one of its links, from the destination MAC on.
type Frame struct {
	Link  string
	Bytes []byte
}

// Pauses are the times to wait before each round of announcements. Frames are lost where
// a switch or a neighbour is slow, so they are sent again.
func Pauses() []time.Duration {
	const ms = time.Millisecond
	return []time.Duration{0, 50 * ms, 150 * ms, 250 * ms, 350 * ms}
}

// mostAnnounced is how many addresses of an interface are announced.
const mostAnnounced = 16

// The EtherTypes of the frames.
const (
	typeARP  = 0x0806
	typeRARP = 0x8035
	typeIPv4 = 0x0800
	typeIPv6 = 0x86dd
)

const broadcast = "ff:ff:ff:ff:ff:ff"

// Announcements are the frames of one round that make known where a guest is whose frames
// leave its pod unchanged: for each such interface one of RARP, by which switches learn the
// port of the MAC address, and one of ARP or neighbour discovery for each address. The
// addresses are those that its filter lets the guest have. A guest that may have any has
// the reported ones, of the interface with the same MAC address. There are none for an
// interface behind address translation, of which no network knows the MAC address.
func Announcements(filters []network.Filter, reported []vmi.InterfaceStatus) []Frame {
	var out []Frame
	for _, f := range filters {
		if f.Uplink == "" {
			continue
		}
		add := func(b []byte) { out = append(out, Frame{Link: f.Uplink, Bytes: b}) }
		mac := hardware(f.MAC)
		if len(mac) != 6 {
			continue
		}
		add(ethernet(hardware(broadcast), mac, typeRARP, arp(3, mac, netip.IPv4Unspecified(), mac, netip.IPv4Unspecified())))
		for _, a := range announced(f, reported) {
			if a.Is4() {
				add(ethernet(hardware(broadcast), mac, typeARP, arp(1, mac, a, make([]byte, 6), a)))
			} else {
				add(ethernet(hardware("33:33:00:00:00:01"), mac, typeIPv6, advertisement(mac, a)))
			}
		}
	}
	return out
}

// Ports are the frames of one round by which switches learn the ports of the MAC addresses that
// [Announcements] announces.
func Ports(filters []network.Filter) []Frame {
	return slices.DeleteFunc(Announcements(filters, nil), func(f Frame) bool {
		return binary.BigEndian.Uint16(f.Bytes[12:]) != typeRARP
	})
}

// announced are the addresses of the guest that others may ask for.
func announced(f network.Filter, reported []vmi.InterfaceStatus) []netip.Addr {
	all := slices.Clone(f.Addresses)
	if len(all) == 0 {
		for _, i := range reported {
			if !strings.EqualFold(i.MAC, f.MAC) {
				continue
			}
			for _, text := range i.IPs {
				// A guest reports what it likes.
				if a, err := netip.ParseAddr(text); err == nil {
					all = append(all, a.WithZone(""))
				}
			}
		}
	}
	all = slices.DeleteFunc(all, func(a netip.Addr) bool {
		return !a.IsValid() || a.Is4In6() || a.IsUnspecified() || a.IsMulticast() || a.IsLoopback() || a == netip.AddrFrom4([4]byte{255, 255, 255, 255})
	})
	slices.SortFunc(all, netip.Addr.Compare)
	all = slices.Compact(all)
	return all[:min(len(all), mostAnnounced)]
}

// hardware is a MAC address. Empty: it is none.
func hardware(mac string) []byte {
	b, _ := hex.DecodeString(strings.ReplaceAll(mac, ":", ""))
	return b
}

// shortest is the length of the shortest frame of Ethernet, without its checksum.
const shortest = 60

func ethernet(to, from []byte, kind uint16, payload []byte) []byte {
	f := binary.BigEndian.AppendUint16(slices.Concat(to, from), kind)
	f = append(f, payload...)
	return append(f, make([]byte, max(0, shortest-len(f)))...)
}

// arp is a message of ARP (RFC 826) or RARP (RFC 903): operation 1 asks for the address of
// the target, 3 for that of its MAC address.
func arp(operation uint16, mac []byte, sender netip.Addr, targetMAC []byte, target netip.Addr) []byte {
	b := []byte{0, 1, typeIPv4 >> 8, typeIPv4 & 0xff, 6, 4}
	b = binary.BigEndian.AppendUint16(b, operation)
	return slices.Concat(b, mac, sender.AsSlice(), targetMAC, target.AsSlice())
}

// allNodes are all hosts on a link.
var allNodes = netip.MustParseAddr("ff02::1")

// advertisement is an unsolicited neighbour advertisement (RFC 4861, 7.2.6), which
// overrides what others know.
func advertisement(mac []byte, a netip.Addr) []byte {
	const override, targetLinkAddress, units = 0x20, 2, 1
	m := slices.Concat([]byte{136, 0, 0, 0, override, 0, 0, 0}, a.AsSlice(), []byte{targetLinkAddress, units}, mac)
	binary.BigEndian.PutUint16(m[2:], checksum(a, allNodes, protocolICMP6, m))
	return slices.Concat(ipv6(a, allNodes, protocolICMP6, 255, len(m)), m)
}

const (
	protocolTCP   = 6
	protocolICMP6 = 58
)

// ipv6 is the header of a packet of IPv6.
func ipv6(from, to netip.Addr, next, hops byte, length int) []byte {
	h := []byte{0x60, 0, 0, 0, byte(length >> 8), byte(length), next, hops}
	return slices.Concat(h, from.AsSlice(), to.AsSlice())
}

// checksum is that of a message of TCP or ICMPv6, whose own field is zero: over the
// addresses, the length and the protocol too.
func checksum(from, to netip.Addr, protocol byte, message []byte) uint16 {
	pseudo := binary.BigEndian.AppendUint32(slices.Concat(from.AsSlice(), to.AsSlice()), uint32(len(message)))
	return sum(slices.Concat(pseudo, []byte{0, 0, 0, protocol}, message))
}

// sum is the checksum of the Internet protocols (RFC 1071).
func sum(b []byte) uint16 {
	var s uint32
	for ; len(b) > 1; b = b[2:] {
		s += uint32(b[0])<<8 | uint32(b[1])
	}
	if len(b) > 0 {
		s += uint32(b[0]) << 8
	}
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return ^uint16(s)
}
