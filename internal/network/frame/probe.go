package frame

import (
	"encoding/binary"
	"net/netip"
	"slices"
)

// Connection is one of TCP between a pod and another host.
type Connection struct {
	Pod, Peer netip.AddrPort
}

// Probes are segments without data for each connection, by the link of the pod. A peer
// whose connection still is there answers with a segment that has the right numbers (RFC
// 9293, 3.10.7.4). A pod that has no such connection any more answers that with a reset,
// which the peer then takes. So a connection ends on which nothing is sent.
//
// The numbers of the connection are not known. There are four segments, whose numbers are
// half of all numbers apart for each direction. For one of them, both are old. The kernel's
// tracking of connections has that one for a part of the connection, and the others for
// invalid, which kube-proxy drops on nodes (tcp_in_window of Linux).
//
// The MAC addresses are not set: the link's network decides where the packets go.
func Probes(link string, all []Connection) []Frame {
	var out []Frame
	for _, c := range all {
		for _, number := range []uint32{0, half} {
			for _, acknowledged := range []uint32{0, half} {
				out = append(out, Frame{Link: link, Bytes: probe(c, number, acknowledged)})
			}
		}
	}
	return out
}

// half is half of all numbers of segments.
const half = 1 << 31

func probe(c Connection, number, acknowledged uint32) []byte {
	const words, ack, window, hops = 5, 0x10, 1024, 64
	from, to := c.Pod.Addr(), c.Peer.Addr()
	t := make([]byte, words*4)
	binary.BigEndian.PutUint16(t, c.Pod.Port())
	binary.BigEndian.PutUint16(t[2:], c.Peer.Port())
	binary.BigEndian.PutUint32(t[4:], number)
	binary.BigEndian.PutUint32(t[8:], acknowledged)
	t[12], t[13] = words<<4, ack
	binary.BigEndian.PutUint16(t[14:], window)
	binary.BigEndian.PutUint16(t[16:], checksum(from, to, protocolTCP, t))
	none := make([]byte, 6)
	if from.Is6() {
		return ethernet(none, none, typeIPv6, slices.Concat(ipv6(from, to, protocolTCP, hops, len(t)), t))
	}
	h := slices.Concat([]byte{0x45, 0, 0, 20 + words*4, 0, 0, 0x40, 0, hops, protocolTCP, 0, 0}, from.AsSlice(), to.AsSlice())
	binary.BigEndian.PutUint16(h[10:], sum(h))
	return ethernet(none, none, typeIPv4, slices.Concat(h, t))
}
