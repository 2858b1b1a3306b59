package network_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/network/networktest"
	"github.com/podvisor/podvisor/internal/testenv"
)

// vnet is the header by which a guest says what it leaves to the hardware (struct
// virtio_net_hdr): a checksum of all from start on, which is written at start+offset, and
// that the frame is a large one to be cut.
func vnet(start, offset int, gso byte) []byte {
	b := make([]byte, networktest.HeaderLength)
	b[0], b[1] = 1, gso
	if gso != 0 {
		binary.LittleEndian.PutUint16(b[2:], uint16(start+20))
		binary.LittleEndian.PutUint16(b[4:], 8)
	}
	binary.LittleEndian.PutUint16(b[6:], uint16(start))
	binary.LittleEndian.PutUint16(b[8:], uint16(offset))
	return b
}

// written is a frame that becomes another when its checksum, of all from start on, is
// written at the place: the two bytes there are then those of value. Messages of neighbour
// discovery keep their length, others get some bytes more.
func written(frame []byte, start, at int, value [2]byte) (before, after []byte) {
	frame = bytes.Clone(frame)
	free := neighbourSum
	if !isDiscovery(frame) {
		frame = append(frame, make([]byte, max(0, 100-len(frame))+2)...)
		if len(frame)%2 != start%2 {
			frame = append(frame, 0)
		}
		free = len(frame) - 2
		// What follows a packet is cut off, so it is made part of it.
		switch binary.BigEndian.Uint16(frame[12:]) {
		case typeIPv4:
			binary.BigEndian.PutUint16(frame[16:], uint16(len(frame)-14))
			binary.BigEndian.PutUint16(frame[24:], 0)
			binary.BigEndian.PutUint16(frame[24:], sum(frame[14:34]))
		case typeIPv6:
			binary.BigEndian.PutUint16(frame[18:], uint16(len(frame)-54))
		}
	}
	// Two bytes that no rule looks at make the sum what it must be (RFC 1624).
	copy(frame[free:], []byte{0, 0})
	without, with := uint32(sum(frame[start:])), uint32(binary.BigEndian.Uint16(value[:]))
	binary.BigEndian.PutUint16(frame[free:], uint16((without+0xffff-with)%0xffff))
	after = bytes.Clone(frame)
	copy(after[at:], value[:])
	return frame, after
}

// neighbourSum is where the sum of a message of neighbour discovery is.
const neighbourSum = 14 + 40 + 2

// isDiscovery says that the frame has such a message with an option.
func isDiscovery(frame []byte) bool {
	return binary.BigEndian.Uint16(frame[12:]) == typeIPv6 && frame[20] == icmp6 && len(frame) == 14+40+32
}

// received are the frames that a tap device got, each without its header.
type received struct {
	mu     sync.Mutex
	frames [][]byte
}

func receive(tap *os.File) *received {
	r := &received{}
	go func() {
		b := make([]byte, 1<<16)
		for {
			n, err := tap.Read(b)
			if err != nil {
				return
			}
			r.mu.Lock()
			r.frames = append(r.frames, bytes.Clone(b[networktest.HeaderLength:n]))
			r.mu.Unlock()
		}
	}()
	return r
}

func (r *received) has(part []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.frames, func(f []byte) bool { return bytes.Contains(f, part) })
}

// afterwards are frames that every rule lets through, and what becomes of each when its
// checksum is written at a place that the guest names: one for each rule.
func afterwards() []struct {
	name  string
	frame []byte
	at    int
	value [2]byte
} {
	mac, own, own6 := networktest.PodMAC, networktest.PodAddress, networktest.PodAddress6
	const link, four, six = 14, 14 + 20, 14 + 40
	far := ip(victim)
	far6 := ip(victim6)
	datagram := fromGuest(typeIPv4, ipv4(own, networktest.NodeAddress, 17, 0, udp(1, 2, make([]byte, 60))))
	sixth := fromGuest(typeIPv6, datagram6(own6, everyone6, 1, 2, make([]byte, 60)))
	solicit := fromGuest(typeIPv6, discovery(own6, everyone6, solicitation, networktest.NodeAddress6, sourceOption, mac))
	advert := fromGuest(typeIPv6, discovery(own6, everyone6, advertisement, own6, targetOption, mac))
	return []struct {
		name  string
		frame []byte
		at    int
		value [2]byte
	}{
		{"the sender of ARP", fromGuest(typeARP, arp(1, mac, own, networktest.NodeAddress)), link + 16, [2]byte(far[2:])},
		{"the MAC of the sender of ARP", fromGuest(typeARP, arp(1, mac, own, networktest.NodeAddress)), link + 12, [2]byte{0, 7}},
		{"the sender of IPv4", datagram, link + 14, [2]byte(far[2:])},
		{"the protocol of IPv4", datagram, link + 8, [2]byte{1, 112}},
		{"the fragment of IPv4", datagram, link + 6, [2]byte{0x20, 0}},
		{"the port of a server of DHCP", datagram, four, [2]byte{0, 67}},
		{"the port of a client of DHCP", datagram, four + 2, [2]byte{0, 68}},
		{"the operation in a request of DHCP", fromGuest(typeIPv4, ipv4(own, networktest.NodeAddress, 17, 0, udp(client, server, dhcpMessage(1, mac)))), four + 8, [2]byte{2, 1}},
		{"the type of a request of DHCPv6", fromGuest(typeIPv6, datagram6(own6, everyone6, client6, server6, append([]byte{1, 7}, make([]byte, 40)...))), six + 8, [2]byte{7, 7}},
		{"the type of ICMP", fromGuest(typeIPv4, ipv4(own, networktest.NodeAddress, 1, 0, icmp(8))), four, [2]byte{5, 0}},
		{"the type of IGMP", fromGuest(typeIPv4, ipv4(own, networktest.NodeAddress, 2, 0, igmp(0x16, "224.0.0.251"))), four, [2]byte{0x11, 0}},
		{"the sender of IPv6", sixth, link + 8 + 14, [2]byte(far6[14:])},
		{"the header that follows that of IPv6", sixth, link + 6, [2]byte{51, 255}},
		{"the port of a server of DHCPv6", sixth, six, [2]byte{0x02, 0x23}},
		{"the port of a client of DHCPv6", sixth, six + 2, [2]byte{0x02, 0x22}},
		{"the type of ICMPv6", solicit, six, [2]byte{routing, 0}},
		{"the link of a question of IPv6", solicit, six + 24 + 6, [2]byte{0, 7}},
		{"the target of an announcement of IPv6", advert, six + 8 + 14, [2]byte(far6[14:])},
		{"the link of an announcement of IPv6", advert, six + 24 + 6, [2]byte{0, 7}},
		{"the header of a fragment", fromGuest(typeIPv6, ipv6(own6, everyone6, fragments, fragment(udp6, 0, true, make([]byte, 64)))), six, [2]byte{options, 0}},
		{"the segment's sender of IPv6", fromGuest(typeIPv6, ipv6(own6, everyone6, 6, make([]byte, 60))), link + 8 + 14, [2]byte(far6[14:])},
		{"the segment's sender of IPv4", fromGuest(typeIPv4, ipv4(own, networktest.NodeAddress, 6, 0, make([]byte, 60))), link + 14, [2]byte(far[2:])},
	}
}

// withoutRouter takes the route to the pod's router of IPv6 away, which does not answer: the
// port of a bridge has no address. It would be waited for, and the pod is bound without it.
func withoutRouter(t *testing.T, pod *os.File) {
	t.Helper()
	networktest.IP(t, pod, "-6 route del default")
}

// A guest leaves the checksum of a frame to the hardware. It is written when the frame has passed
// all rules, at the tap device of a neighbour at the latest.
func TestAttackTheChecksumIsWrittenAfterTheRules(t *testing.T) {
	for _, checked := range []bool{false, true} {
		name := "without the check"
		if checked {
			name = "with the check"
		}
		t.Run(name, func(t *testing.T) {
			pod, node := networktest.DualPod(t)
			tap := neighbour(t, node, "podlink")
			withoutRouter(t, pod)
			v := instance(bridge)
			cfg := bind(t, pod, v)
			if !checked {
				networktest.Run(t, pod, tc(t), "qdisc", "del", "dev", "tap0", "clsact")
			}
			marker := fromGuest(typeARP, arp(1, networktest.PodMAC, networktest.PodAddress, networktest.NodeAddress))
			s := newSender(t, pod, cfg.Attachments[0], marker)
			got := receive(tap)
			await := func(t *testing.T, part []byte, about ...any) {
				t.Helper()
				require.Eventually(t, func() bool { return got.has(part) }, time.Minute, time.Millisecond, about...)
			}
			require.Eventually(t, func() bool { return got.has(s.send(t, marker)) }, time.Minute, 10*time.Millisecond)
			for _, tt := range afterwards() {
				t.Run(tt.name, func(t *testing.T) {
					for _, gso := range []byte{0, 1, 3, 4, 5} {
						for _, start := range []int{20, neighbourSum - 2, tt.at, tt.at - 2, tt.at - 6, tt.at - 16} {
							offset := tt.at - start
							if start < 20 || offset < 0 || isDiscovery(tt.frame) && start > neighbourSum {
								continue
							}
							frame, after := written(tt.frame, start, tt.at, tt.value)
							after = after[12:min(len(after), 92)]
							_, err := s.tap.Write(append(vnet(start, offset, gso), frame...))
							if err != nil { // the kernel refuses some by itself
								continue
							}
							if !checked && gso == 0 {
								await(t, after, "from %d on", start)
							}
							await(t, s.send(t, marker))
							if checked {
								require.False(t, got.has(after), "from %d on, large %d", start, gso)
							}
						}
					}
				})
			}
		})
	}
}

// What guests leave to the hardware otherwise arrives, with the right sum.
func TestChecksumsThatGuestsLeaveToTheHardwareAreWritten(t *testing.T) {
	pod, node := networktest.DualPod(t)
	tap := neighbour(t, node, "podlink")
	withoutRouter(t, pod)
	cfg := bind(t, pod, instance(bridge))
	marker := fromGuest(typeARP, arp(1, networktest.PodMAC, networktest.PodAddress, networktest.NodeAddress))
	s := newSender(t, pod, cfg.Attachments[0], marker)
	got := receive(tap)
	require.Eventually(t, func() bool { return got.has(s.send(t, marker)) }, time.Minute, 10*time.Millisecond)
	own, own6 := networktest.PodAddress, networktest.PodAddress6
	for _, tt := range []struct {
		name          string
		frame         []byte
		start, offset int
		protocol      byte
	}{
		{"TCP", fromGuest(typeIPv4, ipv4(own, networktest.NodeAddress, 6, 0, segment())), 34, 16, 6},
		{"UDP", fromGuest(typeIPv4, ipv4(own, networktest.NodeAddress, 17, 0, udp(7, 9, []byte("by IPv4")))), 34, 6, 17},
		{"TCP by IPv6", fromGuest(typeIPv6, ipv6(own6, everyone6, 6, segment())), 54, 16, 6},
		{"UDP by IPv6", fromGuest(typeIPv6, ipv6(own6, everyone6, 17, udp(7, 9, []byte("by IPv6")))), 54, 6, 17},
		{"TCP behind options of IPv4", fromGuest(typeIPv4, optioned(own, networktest.NodeAddress, 6, segment())), 38, 16, 6},
		{"a renewal by DHCP", fromGuest(typeIPv4, ipv4(own, networktest.NodeAddress, 17, 0, udp(client, server, dhcpMessage(1, networktest.PodMAC)))), 34, 6, 17},
	} {
		t.Run(tt.name, func(t *testing.T) {
			frame := bytes.Clone(tt.frame)
			// Guests write the sum of the addresses there, which is a part of it.
			addresses := frame[26:34]
			if frame[12] == 0x86 {
				addresses = frame[22:54]
			}
			pseudo := append(bytes.Clone(addresses), 0, tt.protocol, 0, 0)
			binary.BigEndian.PutUint16(pseudo[len(pseudo)-2:], uint16(len(frame)-tt.start))
			binary.BigEndian.PutUint16(frame[tt.start+tt.offset:], ^sum(pseudo))
			_, err := s.tap.Write(append(vnet(tt.start, tt.offset, 0), frame...))
			require.NoError(t, err)
			binary.BigEndian.PutUint16(frame[tt.start+tt.offset:], sum(frame[tt.start:]))
			require.Eventually(t, func() bool { return got.has(frame) }, time.Minute, time.Millisecond, fmt.Sprintf("%x", frame))
		})
	}
}

// segment is one of TCP.
func segment() []byte {
	b := append([]byte{0, 7, 0, 9, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x10, 1, 0, 0, 0, 0, 0}, "a segment."...)
	return b
}

// optioned is a packet of IPv4 with an option.
func optioned(from, to string, protocol byte, payload []byte) []byte {
	h := append([]byte{0x46, 0, 0, 0, 0, 7, 0, 0, 64, protocol, 0, 0}, append(ip(from), ip(to)...)...)
	h = append(h, 1, 1, 1, 0)
	binary.BigEndian.PutUint16(h[2:], uint16(len(h)+len(payload)))
	binary.BigEndian.PutUint16(h[10:], sum(h))
	return append(h, payload...)
}

func tc(t *testing.T) string { return testenv.Program(t, "tc") }

// The pod of a routed guest gets no frame whose checksum would be written into the address
// that the pod puts in the place of the guest's.
func TestAttackARoutedGuestHasTheChecksumWrittenIntoThePodsAddress(t *testing.T) {
	pod, _ := networktest.DualPod(t)
	cfg := bind(t, pod, instance(masquerade))
	marker := toGateway(typeARP, arp(1, routedMAC, routed4, gateway4))
	s, inPod := newSender(t, pod, cfg.Attachments[0], marker), networktest.Watch(t, pod, "k6t-eth0")
	s.open(t, inPod)
	send := func(data string) {
		for _, start := range []int{20, 34, 36, 54} {
			for _, frame := range [][]byte{
				toGateway(typeIPv6, datagram6(routed6, networktest.WorldAddress6, 1, 2, []byte(data))),
				toGateway(typeIPv4, ipv4(routed4, networktest.WorldAddress, 17, 0, udp(1, 2, []byte(data)))),
			} {
				for _, at := range []int{28, 36} {
					if at >= start {
						_, err := s.tap.Write(append(vnet(start, at-start, 0), frame...))
						require.NoError(t, err)
					}
				}
			}
		}
	}
	send("<checked>")
	require.True(t, inPod.Await(s.send(t, marker)))
	require.False(t, inPod.Has([]byte("<checked>")))
	networktest.Run(t, pod, tc(t), "qdisc", "del", "dev", "tap0", "clsact")
	send("<unchecked>")
	require.True(t, inPod.Await([]byte("<unchecked>")))
}
