package nft

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"
)

// match is a condition of a rule: as nft writes it, and the comparisons that the
// kernel makes for it.
type match struct {
	text  string
	tests []test
}

// test compares a part of a packet, or a fact about it.
type test struct {
	load load
	// mask says which bits count. Nil: all.
	mask []byte
	// not says that the values must differ.
	not bool
	// values are what is compared with; several are a set, of what of says.
	values [][]byte
	of     numbered
	// last makes a range of it, from the only value to this one. Nil: no range.
	last []byte
}

// numbered is what the numbers of a set are, which the program nft shows.
type numbered int

const (
	ports numbered = iota
	protocols
	icmpTypes
	icmp6Types
	igmpTypes
)

// load says what is compared: a part of one of the packet's headers, or a fact
// about it without a length.
type load struct {
	from           source
	offset, length uint32
}

// source is where the kernel loads from.
type source int

const (
	frame source = iota
	packet
	transport
	fragment6
	inLink
	outLink
	protocol
	direction
)

func equals(l load, value []byte) test { return test{load: l, values: [][]byte{value}} }

// name fills a field of 16 bytes.
func name(link string) []byte {
	out := make([]byte, 16)
	copy(out, link)
	return out
}

func from(link string) match {
	return match{fmt.Sprintf("iifname %q", link), []test{equals(load{from: inLink}, name(link))}}
}

func leaves(link string) match {
	return match{fmt.Sprintf("oifname %q", link), []test{equals(load{from: outLink}, name(link))}}
}

// The protocols that frames carry.
var (
	isARP  = etherType("arp", 0x0806)
	isIPv4 = etherType("ip", 0x0800)
	isIPv6 = etherType("ip6", 0x86dd)
)

// etherType compares the type that is in the frame: that of a tagged frame is the
// tag.
func etherType(words string, number uint16) match {
	return match{"ether type " + words, []test{equals(load{frame, 12, 2}, binary.BigEndian.AppendUint16(nil, number))}}
}

// notFrom is met by frames of other senders.
func notFrom(mac string) match {
	return match{"ether saddr != " + mac, []test{{load: load{frame, 6, 6}, not: true, values: [][]byte{bytesOf(mac)}}}}
}

// toOthers is met by frames for others than the MAC address.
func toOthers(mac string) match {
	return match{"ether daddr != " + mac, []test{{load: load{frame, 0, 6}, not: true, values: [][]byte{bytesOf(mac)}}}}
}

// toBridges is met by frames to one of the groups that bridges do not forward, and toMany
// by frames to any group and to everyone.
var (
	toBridges = toGroup("ff:ff:ff:ff:ff:f0", "01:80:c2:00:00:00")
	toMany    = toGroup("01:00:00:00:00:00", "01:00:00:00:00:00")
)

func toGroup(mask, group string) match {
	t := equals(load{frame, 0, 6}, bytesOf(group))
	t.mask = bytesOf(mask)
	return match{"ether daddr & " + mask + " == " + group, []test{t}}
}

// bytesOf are the bytes of a MAC address.
func bytesOf(mac string) []byte {
	b, _ := hex.DecodeString(strings.ReplaceAll(mac, ":", ""))
	return b
}

// address is where a family's header has an address.
func address(a netip.Addr, at4, at6 uint32) (string, load) {
	if a.Is4() {
		return "ip", load{packet, at4, 4}
	}
	return "ip6", load{packet, at6, 16}
}

func sender(a netip.Addr) match { return at("saddr", a, 12, 8) }

func destination(a netip.Addr) match { return at("daddr", a, 16, 24) }

func at(words string, a netip.Addr, at4, at6 uint32) match {
	f, l := address(a, at4, at6)
	return match{f + " " + words + " " + a.String(), []test{equals(l, a.AsSlice())}}
}

// into is met by packets to an address of the network.
func into(n netip.Prefix) match {
	if n.IsSingleIP() {
		return destination(n.Addr())
	}
	f, l := address(n.Addr(), 16, 24)
	t := equals(l, n.Masked().Addr().AsSlice())
	t.mask = mask(n.Bits(), n.Addr().BitLen())
	return match{f + " daddr " + n.Masked().String(), []test{t}}
}

func mask(bits, length int) []byte {
	out := make([]byte, length/8)
	for n := range bits {
		out[n/8] |= 0x80 >> (n % 8)
	}
	return out
}

// lastHalf is the mask for the second half of an address of IPv6.
var lastHalf = netip.AddrFrom16([16]byte{8: 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})

// endsWith is met by packets from an address with that second half.
func endsWith(id netip.Addr) match {
	t := equals(load{packet, 8, 16}, id.AsSlice())
	t.mask = lastHalf.AsSlice()
	return match{fmt.Sprintf("ip6 saddr & %s == %s", lastHalf, id), []test{t}}
}

// The numbers of protocols.
var numbers = map[string]byte{"icmp": 1, "igmp": 2, "tcp": 6, "udp": 17, "ipv6-icmp": 58}

func carries(carried string) match {
	return match{"meta l4proto " + carried, []test{equals(load{from: protocol}, []byte{numbers[carried]})}}
}

func carriesNot(carried string) match {
	m := carries(carried)
	m.text = "meta l4proto != " + carried
	m.tests[0].not = true
	return m
}

// toPort and fromPort are met by packets of the protocol to or from one of the
// ports.
func toPort(carried string, to ...uint16) match { return port(carried, "dport", 2, to) }

func fromPort(carried string, of ...uint16) match { return port(carried, "sport", 0, of) }

// toPorts is met by packets of the protocol to a port of the range.
func toPorts(carried string, first, last uint16) match {
	m := toPort(carried, first)
	m.text = fmt.Sprintf("%s-%d", m.text, last)
	m.tests[len(m.tests)-1].last = binary.BigEndian.AppendUint16(nil, last)
	return m
}

func port(carried, words string, offset uint32, all []uint16) match {
	t := test{load: load{transport, offset, 2}}
	for _, p := range all {
		t.values = append(t.values, binary.BigEndian.AppendUint16(nil, p))
	}
	return match{carried + " " + words + " " + list(all), append(carries(carried).tests, t)}
}

// list is the set of numbers as nft writes it.
func list[T uint16 | byte](all []T) string {
	if len(all) == 1 {
		return fmt.Sprint(all[0])
	}
	return "{ " + strings.Trim(strings.ReplaceAll(fmt.Sprint(all), " ", ", "), "[]") + " }"
}

// anyOf is met where one of the bytes is; noneOf where another one is.
func anyOf(words string, l load, of numbered, all ...byte) match {
	t := test{load: l, of: of}
	for _, n := range all {
		t.values = append(t.values, []byte{n})
	}
	return match{words + " " + list(all), []test{t}}
}

func noneOf(words string, l load, of numbered, all ...byte) match {
	m := anyOf(words+" !=", l, of, all...)
	m.tests[0].not = true
	return m
}

// isAnswer is met by packets of known connections that the other side began.
var isAnswer = match{"ct direction reply", []test{equals(load{from: direction}, []byte{1})}}

// part is met by packets that have the bytes at that place of the transport
// header; partNot by those that have others there, and not by packets that end
// before.
func part(offset uint32, value []byte) match {
	return match{fmt.Sprintf("@th,%d,%d 0x%x", offset*8, len(value)*8, value), []test{equals(load{transport, offset, uint32(len(value))}, value)}}
}

func partNot(offset uint32, value []byte) match {
	m := part(offset, value)
	m.text = fmt.Sprintf("@th,%d,%d != 0x%x", offset*8, len(value)*8, value)
	m.tests[0].not = true
	return m
}

// fromLinkLocal is met by packets from a link-local address of IPv6, and partLinkLocal
// by those that have one at that place of the transport header.
var fromLinkLocal = func() match {
	t := equals(load{packet, 8, 2}, []byte{0xfe, 0x80})
	t.mask = []byte{0xff, 0xc0}
	return match{"@nh,64,16 & 0xffc0 == 0xfe80", []test{t}}
}()

func partLinkLocal(offset uint32) match {
	t := equals(load{transport, offset, 2}, []byte{0xfe, 0x80})
	t.mask = []byte{0xff, 0xc0}
	return match{fmt.Sprintf("@th,%d,16 & 0xffc0 == 0xfe80", offset*8), []test{t}}
}

// icmp6 is met by messages of ICMPv6 of a type.
func icmp6(kind byte) match {
	return match{fmt.Sprintf("icmpv6 type %s", icmp6Words[kind]), append(carries("ipv6-icmp").tests, equals(load{transport, 0, 1}, []byte{kind}))}
}

var icmp6Words = map[byte]string{
	routerSolicit: "nd-router-solicit", routerAdvert: "nd-router-advert", neighborSolicit: "nd-neighbor-solicit",
	neighborAdvert: "nd-neighbor-advert", listenerReport2: "mld2-listener-report",
}

// Messages that give hosts the way to others, or ask for their groups.
var (
	isRouting4 = typesOf("icmp", "icmp type", icmpTypes, 5, 9)
	isRouting6 = typesOf("ipv6-icmp", "icmpv6 type", icmp6Types, routing6...)
	// isGroupRouting is met by messages of IGMP that are no reports of groups.
	isGroupRouting = func() match {
		m := noneOf("igmp type", load{transport, 0, 1}, igmpTypes, 0x12, 0x16, 0x17, 0x22)
		m.tests = append(carries("igmp").tests, m.tests...)
		return m
	}()
)

func typesOf(carried, words string, of numbered, all ...byte) match {
	m := anyOf(words, load{transport, 0, 1}, of, all...)
	m.tests = append(carries(carried).tests, m.tests...)
	return m
}

// carriesAny is met by packets of one of the protocols, wherever its header begins, and by
// their later fragments.
func carriesAny(all ...byte) match {
	return anyOf("meta l4proto", load{from: protocol}, protocols, all...)
}

// length6 compares the length of what follows the header of IPv6.
func length6(n uint16) match {
	return match{fmt.Sprintf("ip6 length %d", n), []test{equals(load{packet, 4, 2}, binary.BigEndian.AppendUint16(nil, n))}}
}

func length6Not(n uint16) match {
	m := length6(n)
	m.text = fmt.Sprintf("ip6 length != %d", n)
	m.tests[0].not = true
	return m
}

// follows6Not is met by packets with another header after that of IPv6.
func follows6Not(carried string) match {
	return match{"ip6 nexthdr != " + carried, []test{{load: load{packet, 6, 1}, not: true, values: [][]byte{{numbers[carried]}}}}}
}

// arpOfEthernet is met by ARP between addresses of Ethernet and IPv4.
var arpOfEthernet = match{"arp htype 1 arp ptype ip arp hlen 6 arp plen 4", []test{equals(load{packet, 0, 6}, []byte{0, 1, 8, 0, 6, 4})}}

func arpSender(mac string) match {
	return match{"arp saddr ether " + mac, []test{equals(load{packet, 8, 6}, bytesOf(mac))}}
}

func arpFrom(a netip.Addr) match {
	return match{"arp saddr ip " + a.String(), []test{equals(load{packet, 14, 4}, a.AsSlice())}}
}

func arpFor(a netip.Addr) match {
	return match{"arp daddr ip " + a.String(), []test{equals(load{packet, 24, 4}, a.AsSlice())}}
}

// The fragments of a packet after the first one.
var (
	isLaterFragment4 = match{"ip frag-off & 0x1fff != 0x0", []test{{load: load{packet, 6, 2}, mask: []byte{0x1f, 0xff}, not: true, values: [][]byte{{0, 0}}}}}
	isLaterFragment6 = match{"frag frag-off != 0", []test{{load: load{fragment6, 2, 2}, mask: []byte{0xff, 0xf8}, not: true, values: [][]byte{{0, 0}}}}}
)

// fragmentOf is met by fragments of what begins with one of the headers.
func fragmentOf(headers ...byte) match {
	return anyOf("frag nexthdr", load{fragment6, 0, 1}, protocols, headers...)
}
