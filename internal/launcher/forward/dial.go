package forward

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/internal/carry"
	"github.com/podvisor/podvisor/network"
)

// mostToDial is how long a guest may take to accept a connection. It is less than the
// launcher's caller waits for a stream.
const mostToDial = 8 * time.Second

// Dial connects to the port of the guest, by a protocol that is tcp or udp. A connection of
// UDP carries each datagram as [carry.Frames] does.
func Dial(ctx context.Context, w network.Way, protocol string, port uint16) (net.Conn, error) {
	if protocol != "tcp" && protocol != "udp" {
		return nil, fmt.Errorf("dial the guest: protocol %q is neither tcp nor udp", protocol)
	}
	address := net.JoinHostPort(w.To.String(), strconv.Itoa(int(port)))
	if err := w.Leads(protocol, port); err != nil { // as the pod's own address refuses it
		return nil, fmt.Errorf("dial %s %s: connect: %w: %w", protocol, address, syscall.ECONNREFUSED, err)
	}
	ctx, cancel := context.WithTimeout(ctx, mostToDial)
	defer cancel()
	d := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error { return bind(c, w) }}
	c, err := d.DialContext(ctx, protocol, address)
	if err != nil {
		return nil, err
	}
	if protocol == "udp" {
		return carry.Frames(c), nil
	}
	return c, nil
}

// bind binds a socket to the link and the address of the way before it connects. The link is
// first: an address alone would let a route choose another.
func bind(c syscall.RawConn, w network.Way) error {
	var err error
	if ctl := c.Control(func(fd uintptr) {
		if err = unix.SetsockoptString(int(fd), unix.SOL_SOCKET, unix.SO_BINDTODEVICE, w.Link); err != nil {
			err = fmt.Errorf("bind to link %s: %w", w.Link, err)
			return
		}
		// The port is chosen when the other end is known.
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1)
		if err = unix.Bind(int(fd), socketAddress(w.From)); err != nil {
			err = fmt.Errorf("bind to address %s: %w", w.From, err)
		}
	}); ctl != nil {
		return ctl
	}
	return err
}

func socketAddress(a netip.Addr) unix.Sockaddr {
	if a.Is4() {
		return &unix.SockaddrInet4{Addr: a.As4()}
	}
	return &unix.SockaddrInet6{Addr: a.As16()}
}
