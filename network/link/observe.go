package link

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/network"
)

// Observe reads the links of a namespace. The error wraps [ErrCrowded] if there are
// more than a pod has.
func Observe(ns *os.File) (network.State, error) {
	var s network.State
	err := within(ns, func() error {
		if err := uncrowded(); err != nil {
			return err
		}
		h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
		if err != nil {
			return err
		}
		defer h.Close()
		s, err = observe(h)
		return err
	})
	return s, err
}

// observe reads the links of the namespace that the thread is in.
func observe(h *netlink.Handle) (network.State, error) {
	links, err := h.LinkList()
	if err != nil {
		return network.State{}, fmt.Errorf("list links: %w", err)
	}
	slices.SortFunc(links, func(a, b netlink.Link) int { return cmp.Compare(a.Attrs().Index, b.Attrs().Index) })
	names := map[int]string{}
	for _, l := range links {
		names[l.Attrs().Index] = l.Attrs().Name
	}
	var s network.State
	for _, l := range links {
		got, err := observeLink(h, l, names)
		if err != nil {
			return network.State{}, err
		}
		s.Links = append(s.Links, got)
	}
	if err := observeAddresses(h, &s); err != nil {
		return network.State{}, err
	}
	if slices.ContainsFunc(s.Links, func(l network.Link) bool { return l.Kind == network.Macvlan }) {
		if err := observeStatic(h, &s); err != nil {
			return network.State{}, err
		}
	}
	return s, observeRoutes(h, &s)
}

// observeStatic reads which addresses bridges keep as those behind their ports.
func observeStatic(h *netlink.Handle, s *network.State) error {
	entries, err := h.NeighList(0, unix.AF_BRIDGE)
	if err != nil {
		return fmt.Errorf("list the addresses behind the ports of bridges: %w", err)
	}
	for _, e := range entries {
		if l := indexed(s, e.LinkIndex); l != nil && e.MasterIndex != 0 && e.State == netlink.NUD_NOARP {
			l.Static = append(l.Static, e.HardwareAddr.String())
		}
	}
	return nil
}

func observeLink(h *netlink.Handle, l netlink.Link, names map[int]string) (network.Link, error) {
	a := l.Attrs()
	got := network.Link{
		Index: a.Index, Name: a.Name, Kind: l.Type(), MAC: a.HardwareAddr.String(), MTU: a.MTU,
		Up: a.Flags&net.FlagUp != 0, Master: names[a.MasterIndex],
	}
	switch got.Kind {
	case "device":
		got.Kind = ""
	case "tuntap":
		got.Kind = string(network.Tap)
	}
	if t, ok := l.(*netlink.Tuntap); ok {
		checks, err := checksOffloads(l)
		if err != nil {
			return got, fmt.Errorf("read the filters of %s: %w", got.Name, err)
		}
		got.ChecksOffloads = checks
		got.Owner, got.MultiQueue = tapOwner(t), t.Flags&netlink.TUNTAP_MULTI_QUEUE != 0
	}
	if b, ok := l.(*netlink.Bridge); ok {
		got.ForwardsGroups = b.GroupFwdMask != nil && *b.GroupFwdMask == allGroups
	}
	if got.Master != "" {
		p, err := h.LinkGetProtinfo(l)
		if err != nil {
			return got, fmt.Errorf("read the port %s of %s: %w", got.Name, got.Master, err)
		}
		got.Learning, got.Flooding = p.Learning, p.Flood
	}
	v, _ := sysctl("net/ipv6/conf/" + got.Name + "/accept_ra")
	got.AcceptsRA = v != "" && v != "0"
	return got, nil
}

func observeAddresses(h *netlink.Handle, s *network.State) error {
	addresses, err := h.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return fmt.Errorf("list addresses: %w", err)
	}
	for _, a := range addresses {
		p := prefix(a.IPNet)
		linkLocal6 := p.Addr().Is6() && p.Addr().IsLinkLocalUnicast()
		if l := indexed(s, a.LinkIndex); l != nil && !linkLocal6 {
			l.Addresses = append(l.Addresses, p)
		}
	}
	for i := range s.Links {
		slices.SortStableFunc(s.Links[i].Addresses, compareAddresses)
	}
	return nil
}

// compareAddresses puts IPv4 first and leaves it in the kernel's order, which has
// a meaning: the first address of a network is the one that is used. The order
// of IPv6 addresses is that in which they came, reversed.
func compareAddresses(a, b netip.Prefix) int {
	if a.Addr().Is4() && b.Addr().Is4() {
		return 0
	}
	return a.Addr().Compare(b.Addr())
}

func observeRoutes(h *netlink.Handle, s *network.State) error {
	routes, err := h.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE)
	if err != nil {
		return fmt.Errorf("list routes: %w", err)
	}
	slices.SortStableFunc(routes, func(a, b netlink.Route) int { return cmp.Compare(a.Priority, b.Priority) })
	for _, r := range routes {
		index, gateway := r.LinkIndex, r.Gw
		if len(r.MultiPath) > 0 {
			index, gateway = r.MultiPath[0].LinkIndex, r.MultiPath[0].Gw
		}
		l := indexed(s, index)
		if l == nil || r.Type != unix.RTN_UNICAST || r.Dst == nil {
			continue
		}
		got := network.Route{Destination: prefix(r.Dst)}
		if a, ok := netip.AddrFromSlice(gateway); ok {
			got.Gateway = a.Unmap()
		}
		switch r.Table {
		case unix.RT_TABLE_MAIN:
			// Every link has the one to the link-local addresses of IPv6.
			if got.Destination.Addr().Is4() || !got.Destination.Addr().IsLinkLocalUnicast() {
				l.Routes = append(l.Routes, got)
			}
		case network.RememberTable:
			l.Remembered = append(l.Remembered, got)
		}
	}
	return nil
}

func indexed(s *network.State, index int) *network.Link {
	for i := range s.Links {
		if s.Links[i].Index == index {
			return &s.Links[i]
		}
	}
	return nil
}

func prefix(n *net.IPNet) netip.Prefix {
	a, _ := netip.AddrFromSlice(n.IP)
	bits, _ := n.Mask.Size()
	return netip.PrefixFrom(a.Unmap(), bits)
}

func ipnet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
