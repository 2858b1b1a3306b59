package link

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/network"
)

// Apply makes the links and settings of a namespace what cfg says. It takes the
// steps that are missing, in an order in which it may be interrupted anywhere,
// and stops at the first step that fails, and when ctx ends. It does not apply the
// address translation in cfg.
func Apply(ctx context.Context, ns *os.File, cfg network.Config) error {
	return within(ns, func() error {
		h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
		if err != nil {
			return err
		}
		defer h.Close()
		have, err := observe(ctx)
		if err != nil {
			return err
		}
		todo, err := steps(have, sysctls(cfg), cfg)
		if err != nil {
			return err
		}
		a := actor{h: h, interfaces: interfaces(cfg)}
		for n, s := range todo {
			if ctx.Err() != nil {
				return fmt.Errorf("%d of %d steps are left: %w", len(todo)-n, len(todo), context.Cause(ctx))
			}
			if err := a.act(s); err != nil {
				return err
			}
		}
		return nil
	})
}

// actor takes steps in the namespace that its thread is in.
type actor struct {
	h *netlink.Handle
	// interfaces are the interfaces of the VMI by the names of their links.
	interfaces map[string]string
}

func interfaces(cfg network.Config) map[string]string {
	all := map[string]string{}
	for _, l := range cfg.Links {
		all[l.Name] = l.Interface
		if l.Interim != "" {
			all[l.Interim] = l.Interface
		}
	}
	return all
}

func (a *actor) act(s step) error {
	var err error
	switch s := s.(type) {
	case create:
		err = wrap(a.create(s), "%s: create", about(a.interfaces[s.Name], s.Name))
	case remove:
		err = a.on(s.Link, "remove", a.h.LinkDel)
	case rename:
		err = a.on(s.Link, "rename to "+s.Name, func(l netlink.Link) error { return a.h.LinkSetName(l, s.Name) })
	case setDown:
		err = a.on(s.Link, "set down", a.h.LinkSetDown)
	case setUp:
		err = a.on(s.Link, "set up", a.h.LinkSetUp)
	case setMAC:
		err = a.on(s.Link, "set MAC address "+s.MAC, func(l netlink.Link) error { return a.setMAC(l, s.MAC) })
	case setMTU:
		err = a.on(s.Link, "set MTU", func(l netlink.Link) error { return a.h.LinkSetMTU(l, s.MTU) })
	case setMaster:
		err = a.on(s.Link, "make it a port of "+s.Master, func(l netlink.Link) error { return a.setMaster(l, s.Master) })
	case stopLearning:
		err = a.on(s.Link, "stop learning", func(l netlink.Link) error { return a.h.LinkSetLearning(l, false) })
	case stopFlooding:
		err = a.on(s.Link, "stop flooding", func(l netlink.Link) error { return a.h.LinkSetFlood(l, false) })
	case forwardGroups:
		err = a.on(s.Link, "forward groups", a.forwardGroups)
	case checkOffloads:
		err = a.on(s.Link, "check offloads", a.checkOffloads)
	case keepMAC:
		err = a.on(s.Link, "keep MAC address "+s.MAC, func(l netlink.Link) error { return a.keepMAC(l, s.MAC) })
	case addAddress:
		err = a.on(s.Link, "add address "+s.Address.String(), func(l netlink.Link) error { return a.h.AddrReplace(l, address(s.Address)) })
	case removeAddress:
		err = a.on(s.Link, "remove address "+s.Address.String(), func(l netlink.Link) error { return a.removeAddress(l, address(s.Address)) })
	case remember:
		err = a.on(s.Link, "remember route "+s.Route.String(), func(l netlink.Link) error { return a.h.RouteReplace(remembered(l, s.Route)) })
	case forget:
		err = a.on(s.Link, "forget route "+s.Route.String(), func(l netlink.Link) error { return a.forget(l, s.Route) })
	case setSysctl:
		if err = a.setSysctl(s.Sysctl); s.Optional {
			err = nil
		}
		err = wrap(err, "set %s to %s", s.Key, s.Value)
	default:
		err = fmt.Errorf("unknown step %T", s)
	}
	return err
}

// on calls f with the link of that name.
func (a *actor) on(name, what string, f func(netlink.Link) error) error {
	l, err := a.h.LinkByName(name)
	if err == nil {
		err = f(l)
	}
	return wrap(err, "%s: %s", about(a.interfaces[name], name), what)
}

// about names a link in an error, with the interface that it is for.
func about(iface, link string) string {
	if iface == "" {
		return "link " + link
	}
	return "bind interface " + iface + ": link " + link
}

func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
}

func (a *actor) create(c create) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = c.Name, c.MTU
	if c.MAC != "" {
		mac, err := net.ParseMAC(c.MAC)
		if err != nil {
			return err
		}
		attrs.HardwareAddr = mac
	}
	switch c.Kind {
	case network.Tap:
		return createTap(c.Name, c.Owner, c.MultiQueue)
	case network.Bridge:
		// Two or three ports need no snooping, and without a querier of groups it
		// would drop the neighbour discovery of IPv6.
		return a.h.LinkAdd(&netlink.Bridge{LinkAttrs: attrs, MulticastSnooping: new(false)})
	default:
		return fmt.Errorf("links of kind %q cannot be made", c.Kind)
	}
}

// allGroups are those of the groups 01:80:c2:00:00:00 to 0f, a bit for each, that a bridge
// can forward. It always forwards the first one without a spanning tree, never
// the second, and hands the third to the pod past the rules for what it would forward.
const allGroups uint16 = 0xfff8

func (a *actor) forwardGroups(l netlink.Link) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = l.Attrs().Name
	return a.h.LinkModify(&netlink.Bridge{LinkAttrs: attrs, GroupFwdMask: new(allGroups)})
}

func (a *actor) setMAC(l netlink.Link, mac string) error {
	hw, err := net.ParseMAC(mac)
	if err != nil {
		return err
	}
	return a.h.LinkSetHardwareAddr(l, hw)
}

func (a *actor) keepMAC(l netlink.Link, mac string) error {
	hw, err := net.ParseMAC(mac)
	if err != nil {
		return err
	}
	return a.h.NeighSet(&netlink.Neigh{
		LinkIndex: l.Attrs().Index, Family: unix.AF_BRIDGE, Flags: netlink.NTF_MASTER, State: netlink.NUD_NOARP, HardwareAddr: hw,
	})
}

func (a *actor) setMaster(l netlink.Link, master string) error {
	m, err := a.h.LinkByName(master)
	if err != nil {
		return err
	}
	return a.h.LinkSetMaster(l, m)
}

// forget removes a remembered route of the link, whatever its metric is: earlier
// releases gave it none.
func (a *actor) forget(l netlink.Link, r network.Route) error {
	route := remembered(l, r)
	route.Priority = 0
	return a.h.RouteDel(route)
}

// removeAddress removes an address, which may be gone: the kernel removes those
// that depend on another, and those of IPv6 when a link is set down.
func (a *actor) removeAddress(l netlink.Link, addr *netlink.Addr) error {
	err := a.h.AddrDel(l, addr)
	if errors.Is(err, unix.EADDRNOTAVAIL) {
		return nil
	}
	return err
}

// address is an address without duplicate address detection.
func address(p netip.Prefix) *netlink.Addr {
	a := &netlink.Addr{IPNet: ipnet(p)}
	if p.Addr().Is6() {
		a.Flags = unix.IFA_F_NODAD
	}
	return a
}

// remembered is a route that is only kept. Links that remember routes to the same
// destination share a table: each has the metric of its index, since the kernel
// takes a route with the same metric for the same route.
func remembered(l netlink.Link, r network.Route) *netlink.Route {
	index := l.Attrs().Index
	out := &netlink.Route{LinkIndex: index, Priority: index, Table: network.RememberTable, Dst: ipnet(r.Destination), Scope: netlink.SCOPE_LINK}
	if r.Gateway.IsValid() {
		out.Gw, out.Scope, out.Flags = r.Gateway.AsSlice(), netlink.SCOPE_UNIVERSE, int(netlink.FLAG_ONLINK)
	}
	return out
}
