package link

import (
	"cmp"
	"context"
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
func Observe(ctx context.Context, ns *os.File) (s network.State, err error) {
	err = within(ns, func() error {
		s, err = observe(ctx)
		return err
	})
	return s, err
}

// observe reads the links of the namespace that the thread is in. Whatever the number of
// links is, each kind of thing is listed once.
func observe(ctx context.Context) (network.State, error) {
	var found []foundLink
	names := map[int]string{}
	err := eachLink(ctx, unix.AF_UNSPEC, func(l netlink.Link) error {
		is, err := observeLink(l)
		found = append(found, foundLink{is, l.Attrs().MasterIndex})
		names[l.Attrs().Index] = l.Attrs().Name
		return err
	})
	if err != nil {
		return network.State{}, err
	}
	slices.SortFunc(found, func(a, b foundLink) int { return cmp.Compare(a.Index, b.Index) })
	var s network.State
	for _, l := range found {
		l.Master = names[l.master]
		s.Links = append(s.Links, l.Link)
	}
	for _, more := range []func(context.Context, *network.State) error{observeSettings, observePorts, observeAddresses, observeStatic, observeRoutes} {
		if err := more(ctx, &s); err != nil {
			return network.State{}, err
		}
	}
	return s, nil
}

// foundLink is a link whose master's name is not known yet.
type foundLink struct {
	network.Link
	master int
}

// observeStatic reads which addresses bridges keep as those behind their ports, if there
// is a link for which that matters.
func observeStatic(ctx context.Context, s *network.State) error {
	if !slices.ContainsFunc(s.Links, func(l network.Link) bool { return l.Kind == network.Macvlan }) {
		return nil
	}
	return eachNeighbour(ctx, unix.AF_BRIDGE, func(e *netlink.Neigh) {
		if l := indexed(s, e.LinkIndex); l != nil && e.MasterIndex != 0 && e.State == netlink.NUD_NOARP {
			l.Static = append(l.Static, e.HardwareAddr.String())
		}
	})
}

// observePorts reads how bridges treat their ports, if there are any.
func observePorts(ctx context.Context, s *network.State) error {
	bridges, ports := map[string]bool{}, map[int]bool{}
	for _, l := range s.Links {
		bridges[l.Name] = l.Kind == string(network.Bridge)
	}
	for _, l := range s.Links {
		if bridges[l.Master] {
			ports[l.Index] = true
		}
	}
	if len(ports) == 0 {
		return nil
	}
	err := eachLink(ctx, unix.AF_BRIDGE, func(p netlink.Link) error {
		if index, settings := p.Attrs().Index, p.Attrs().Protinfo; ports[index] && settings != nil {
			l := indexed(s, index)
			l.Learning, l.Flooding = settings.Learning, settings.Flood
			delete(ports, index)
		}
		return nil
	})
	if err == nil && len(ports) > 0 {
		err = fmt.Errorf("list the ports of bridges: %d links have ceased to be ports", len(ports))
	}
	return err
}

// observeSettings reads the settings of the links.
func observeSettings(ctx context.Context, s *network.State) error {
	for i := range s.Links {
		if ctx.Err() != nil {
			return fmt.Errorf("read the settings of the links: %w", context.Cause(ctx))
		}
		v, _ := sysctl("net/ipv6/conf/" + s.Links[i].Name + "/accept_ra")
		s.Links[i].AcceptsRA = v != "" && v != "0"
	}
	return nil
}

// observeLink is what the message about a link says of it.
func observeLink(l netlink.Link) (network.Link, error) {
	a := l.Attrs()
	got := network.Link{
		Index: a.Index, Name: a.Name, Kind: l.Type(), MAC: a.HardwareAddr.String(), MTU: a.MTU,
		Up: a.Flags&net.FlagUp != 0,
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
	return got, nil
}

func observeAddresses(ctx context.Context, s *network.State) error {
	err := eachAddress(ctx, unix.AF_UNSPEC, func(index int, p netip.Prefix) {
		linkLocal6 := p.Addr().Is6() && p.Addr().IsLinkLocalUnicast()
		if l := indexed(s, index); l != nil && !linkLocal6 {
			l.Addresses = append(l.Addresses, p)
		}
	})
	for i := range s.Links {
		slices.SortStableFunc(s.Links[i].Addresses, compareAddresses)
	}
	return err
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

func observeRoutes(ctx context.Context, s *network.State) error {
	var routes []foundRoute
	err := eachRoute(ctx, unix.AF_UNSPEC, func(r foundRoute) {
		if r.table == unix.RT_TABLE_MAIN || r.table == network.RememberTable {
			routes = append(routes, r)
		}
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(routes, func(a, b foundRoute) int { return cmp.Compare(a.priority, b.priority) })
	for _, r := range routes {
		l := indexed(s, r.index)
		switch {
		case l == nil:
		case r.table == network.RememberTable:
			l.Remembered = append(l.Remembered, r.Route)
		// Every link has the one to the link-local addresses of IPv6.
		case r.Destination.Addr().Is4() || !r.Destination.Addr().IsLinkLocalUnicast():
			l.Routes = append(l.Routes, r.Route)
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

func ipnet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
