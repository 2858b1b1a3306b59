package network_test

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"strings"
)

// ethernet is a frame.
func ethernet(to, from string, kind uint16, payload []byte) []byte {
	f := append(hardware(to), hardware(from)...)
	return append(binary.BigEndian.AppendUint16(f, kind), payload...)
}

func hardware(mac string) []byte {
	b, _ := hex.DecodeString(strings.ReplaceAll(mac, ":", ""))
	return b
}

const broadcast = "ff:ff:ff:ff:ff:ff"

func ip(s string) []byte { return netip.MustParseAddr(s).AsSlice() }

// arp is a message of ARP: operation 1 asks for an address, 2 answers.
func arp(operation byte, mac, sender, target string) []byte {
	b := append([]byte{0, 1, 8, 0, 6, 4, 0, operation}, hardware(mac)...)
	b = append(append(b, ip(sender)...), make([]byte, 6)...)
	return append(b, ip(target)...)
}

// sum is the checksum of the Internet protocols.
func sum(b []byte) uint16 {
	var s uint32
	for len(b) > 1 {
		s += uint32(b[0])<<8 | uint32(b[1])
		b = b[2:]
	}
	if len(b) > 0 {
		s += uint32(b[0]) << 8
	}
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return ^uint16(s)
}

// ipv4 is a packet. fragment is the field with the flags and the offset.
func ipv4(from, to string, protocol byte, fragment uint16, payload []byte) []byte {
	h := []byte{0x45, 0, 0, 0, 0, 7, 0, 0, 64, protocol, 0, 0}
	binary.BigEndian.PutUint16(h[2:], uint16(20+len(payload)))
	binary.BigEndian.PutUint16(h[6:], fragment)
	h = append(append(h, ip(from)...), ip(to)...)
	binary.BigEndian.PutUint16(h[10:], sum(h))
	return append(h, payload...)
}

// udp is a datagram without a checksum, which IPv4 allows.
func udp(from, to uint16, payload []byte) []byte {
	b := binary.BigEndian.AppendUint16(nil, from)
	b = binary.BigEndian.AppendUint16(b, to)
	b = binary.BigEndian.AppendUint16(b, uint16(8+len(payload)))
	return append(append(b, 0, 0), payload...)
}

// dhcp is a message of a client with that MAC.
func dhcpMessage(operation byte, mac string) []byte {
	b := make([]byte, 240)
	b[0], b[1], b[2] = operation, 1, 6
	copy(b[28:], hardware(mac))
	copy(b[236:], []byte{99, 130, 83, 99})
	return append(b, 53, 1, 1, 255)
}

// The numbers of the headers of IPv6.
const (
	hopByHop, fragments, options = 0, 44, 60
	udp6, icmp6                  = 17, 58
)

// ipv6 is a packet whose payload begins with the header of that number.
func ipv6(from, to string, header byte, payload []byte) []byte {
	h := []byte{0x60, 0, 0, 0, byte(len(payload) >> 8), byte(len(payload)), header, 255}
	return append(append(append(h, ip(from)...), ip(to)...), payload...)
}

// before puts a header of options before a payload.
func before(next byte, payload []byte) []byte {
	return append([]byte{next, 0, 1, 4, 0, 0, 0, 0}, payload...)
}

// fragment is a part of a packet that begins at the offset, in units of 8 bytes.
func fragment(next byte, offset uint16, more bool, payload []byte) []byte {
	h := []byte{next, 0, 0, 0, 0, 0, 0, 9}
	field := offset << 3
	if more {
		field |= 1
	}
	binary.BigEndian.PutUint16(h[2:], field)
	return append(h, payload...)
}

// summed puts the checksum into a message of UDP or ICMPv6.
func summed(from, to string, header byte, at int, payload []byte) []byte {
	pseudo := append(append([]byte{}, ip(from)...), ip(to)...)
	pseudo = append(pseudo, 0, 0, byte(len(payload)>>8), byte(len(payload)), 0, 0, 0, header)
	binary.BigEndian.PutUint16(payload[at:], sum(append(pseudo, payload...)))
	return payload
}

// message is a message of ICMPv6 with a body, the address that it is about, if
// any, and an option with a link's address, if any.
func message(from, to string, kind byte, target string, option byte, mac string) []byte {
	b := []byte{kind, 0, 0, 0, 0, 0, 0, 0}
	if target != "" {
		b = append(b, ip(target)...)
	}
	if option != 0 {
		b = append(append(b, option, 1), hardware(mac)...)
	}
	return summed(from, to, icmp6, 2, b)
}

// discovery is a packet with such a message and nothing before it.
func discovery(from, to string, kind byte, target string, option byte, mac string) []byte {
	return ipv6(from, to, icmp6, message(from, to, kind, target, option, mac))
}

// datagram6 is a packet of UDP.
func datagram6(from, to string, source, destination uint16, payload []byte) []byte {
	return ipv6(from, to, udp6, summed(from, to, udp6, 6, udp(source, destination, payload)))
}
