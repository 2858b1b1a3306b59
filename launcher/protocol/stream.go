package protocol

import (
	"strconv"
	"strings"
)

// Stream is a connection into a launcher's pod, by name.
type Stream string

// The streams.
const (
	// StreamNetworkNamespace carries nothing but the descriptor of the pod's
	// network namespace, as SCM_RIGHTS of the first byte of the answer.
	StreamNetworkNamespace Stream = "network-namespace"
	// StreamConsole is the guest's serial console, raw bytes in both directions.
	StreamConsole Stream = "console"
	// StreamScreen is the guest's screen, in the RFB protocol. It ends those before.
	StreamScreen Stream = "screen"
	// StreamScreenIfFree is the same, and is refused as [ReasonBusy] while another is
	// open.
	StreamScreenIfFree Stream = "screen-if-free"
	// StreamScreenshot is a picture of the guest's screen as a PNG, and then ends.
	StreamScreenshot Stream = "screenshot"
)

// portStream begins the names of streams of ports: port-tcp-22.
const portStream = "port-"

// PortStream is the stream of a port of the guest, by a network that is tcp or udp: raw bytes
// in both directions, and with udp each datagram after its length, a number of two bytes with
// the most significant one first. Where the guest is, is nothing that the stream says.
func PortStream(network string, port uint16) Stream {
	return Stream(portStream + network + "-" + strconv.Itoa(int(port)))
}

// Port is the port of a [PortStream]. It is false for all other streams, and for a port that
// is written in another way than [PortStream] writes it.
func (s Stream) Port() (network string, port uint16, ok bool) {
	rest, is := strings.CutPrefix(string(s), portStream)
	network, digits, both := strings.Cut(rest, "-")
	n, err := strconv.ParseUint(digits, 10, 16)
	if !is || !both || err != nil || n == 0 || network != "tcp" && network != "udp" || PortStream(network, uint16(n)) != s {
		return "", 0, false
	}
	return network, uint16(n), true
}
