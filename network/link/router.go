package link

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/network"
)

// Times of the search for a router. A pod looks for duplicates of its link-local address
// for a second or two, before which it cannot ask.
const (
	routerTime = 3 * time.Second
	routerTick = 20 * time.Millisecond
)

// discard is the port of the datagrams that have the kernel look for a neighbour.
const discard = 9

// FindRouter looks for the router of IPv6 that the default route of the link of s with
// that name leads to, and sets its [network.Link.RouterMAC] if the router answers at the
// link-local address that its MAC makes, as every bridge and veth of Linux does. It sends
// datagrams, and waits for three seconds if there is no answer. If it does not,
// RouterSilent is set. Without such a route, or if an advertisement of the network has
// brought it, or if the link is bound already, nothing is done.
func FindRouter(ns *os.File, s *network.State, name string) error {
	n := slices.IndexFunc(s.Links, func(l network.Link) bool { return l.Name == name && l.Up && l.Kind != string(network.Bridge) })
	if n < 0 {
		return nil
	}
	l := &s.Links[n]
	err := within(ns, func() error {
		h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
		if err != nil {
			return err
		}
		defer h.Close()
		gateway, err := defaultRouter(h, l.Index)
		if err != nil || !gateway.IsValid() {
			return err
		}
		l.RouterSilent = true
		mac, err := neighbour(h, l.Index, gateway)
		if mac == "" || err != nil {
			return err
		}
		again, err := neighbour(h, l.Index, network.LinkLocal(mac))
		if again == mac && err == nil {
			l.RouterMAC, l.RouterSilent = mac, false
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("link %s: look for its router of IPv6: %w", name, err)
	}
	return nil
}

// defaultRouter is the gateway of the link's default route of IPv6 that no advertisement
// has brought. Not valid: there is none.
func defaultRouter(h *netlink.Handle, index int) (netip.Addr, error) {
	routes, err := h.RouteListFiltered(netlink.FAMILY_V6, &netlink.Route{LinkIndex: index, Table: unix.RT_TABLE_MAIN}, netlink.RT_FILTER_OIF|netlink.RT_FILTER_TABLE)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("list routes: %w", err)
	}
	for _, r := range routes {
		if r.Dst != nil && prefix(r.Dst).Bits() != 0 || r.Protocol == unix.RTPROT_RA {
			continue
		}
		if a, ok := netip.AddrFromSlice(r.Gw); ok {
			return a, nil
		}
	}
	return netip.Addr{}, nil
}

// neighbour is the MAC address of the neighbour, or empty if it does not answer in time.
func neighbour(h *netlink.Handle, index int, a netip.Addr) (string, error) {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return "", fmt.Errorf("open a socket: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	to := &unix.SockaddrInet6{Port: discard, ZoneId: uint32(index), Addr: a.As16()}
	for end := time.Now().Add(routerTime); time.Now().Before(end); time.Sleep(routerTick) {
		_ = unix.Sendto(fd, nil, 0, to) // fails until the pod has an address to send from
		all, err := h.NeighList(index, unix.AF_INET6)
		if err != nil {
			return "", fmt.Errorf("list neighbours: %w", err)
		}
		for _, n := range all {
			const known = netlink.NUD_REACHABLE | netlink.NUD_STALE | netlink.NUD_DELAY | netlink.NUD_PROBE | netlink.NUD_PERMANENT
			if ip, ok := netip.AddrFromSlice(n.IP); ok && ip == a && n.State&known != 0 && len(n.HardwareAddr) == 6 {
				return n.HardwareAddr.String(), nil
			}
		}
	}
	return "", nil
}
