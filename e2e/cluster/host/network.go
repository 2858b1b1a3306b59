package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/podvisor/podvisor/e2e/cluster/plan"
)

// The names of links; they are alone in their namespaces, so every cluster uses the same.
const (
	bridgeLink = "br0"
	nodeLink   = "eth0"
	// The second network of the nodes has no addresses: it is for pods that a network
	// plugin puts on it. In a node its link is a port of the bridge of the same name.
	secondBridge = "br1"
	secondLink   = "eth1"
)

// makeSwitch sets up the network of the control plane: the bridge that all
// nodes are plugged into.
func makeSwitch(addresses ...netip.Prefix) error {
	// With forwarding, a packet to the outside is refused at once instead of
	// vanishing: the sender need not wait for a timeout.
	if err := settings(); err != nil {
		return err
	}
	if err := up("lo"); err != nil {
		return err
	}
	for _, bridge := range []string{bridgeLink, secondBridge} {
		if err := addBridge(bridge); err != nil {
			return err
		}
	}
	for _, address := range addresses {
		if err := addAddress(bridgeLink, address); err != nil {
			return err
		}
	}
	return nil
}

// addBridge makes a bridge that forwards frames between its ports.
func addBridge(name string) error {
	if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: name}}); err != nil {
		return fmt.Errorf("add bridge %s: %w", name, err)
	}
	return up(name)
}

// plug connects the node whose process 1 is pid.
func plug(n plan.Host, pid int) error {
	// The node waits for the last one.
	for _, l := range []struct{ name, bridge, peer string }{
		{secondOf(n), secondBridge, secondLink},
		{n.Name, bridgeLink, nodeLink},
	} {
		bridge, err := netlink.LinkByName(l.bridge)
		if err != nil {
			return err
		}
		attrs := netlink.LinkAttrs{Name: l.name, MasterIndex: bridge.Attrs().Index}
		veth := &netlink.Veth{LinkAttrs: attrs, PeerName: l.peer, PeerNamespace: netlink.NsPid(pid)}
		if err := netlink.LinkAdd(veth); err != nil {
			return fmt.Errorf("connect %s of node %s: %w", l.peer, n.Name, err)
		}
		if err := up(l.name); err != nil {
			return err
		}
	}
	if err := addRoute(n.Pods, n.Address.Addr(), bridgeLink); err != nil {
		return err
	}
	return addRoute(n.Pods6, n.Address6.Addr(), bridgeLink)
}

// secondOf is the name of the node's link to the second network.
func secondOf(n plan.Host) string { return n.Name + "-" + secondLink }

// unplug removes the node's links, if there are any. When a node dies, their ends
// go some time later by themselves.
func unplug(n plan.Host) error {
	for _, name := range []string{n.Name, secondOf(n)} {
		link, err := netlink.LinkByName(name)
		if errors.As(err, &netlink.LinkNotFoundError{}) {
			continue
		}
		if err != nil {
			return err
		}
		if err := netlink.LinkDel(link); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("disconnect %s: %w", name, err)
		}
	}
	return nil
}

// connect sets up the network of a node, from inside, as soon as it is plugged in.
func connect(ctx context.Context, n plan.Host, p plan.Plan) error {
	if err := settings(); err != nil {
		return err
	}
	if err := up("lo"); err != nil {
		return err
	}
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		if _, err := netlink.LinkByName(nodeLink); err == nil {
			break
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the node was not connected: %w", ctx.Err())
		case <-tick.C:
		}
	}
	for _, address := range []netip.Prefix{n.Address, n.Address6} {
		if err := addAddress(nodeLink, address); err != nil {
			return err
		}
	}
	for _, r := range nodeRoutes(n, p) {
		if err := addRoute(r.to, r.via, nodeLink); err != nil {
			return err
		}
	}
	return joinSecond()
}

// route is a way to a network.
type route struct {
	to  netip.Prefix
	via netip.Addr
}

// nodeRoutes are a node's routes: to the pods of the other nodes, and to all else by
// the control plane.
func nodeRoutes(n plan.Host, p plan.Plan) []route {
	routes := []route{
		{netip.MustParsePrefix("0.0.0.0/0"), p.ControlPlane.Address.Addr()},
		{netip.MustParsePrefix("::/0"), p.ControlPlane.Address6.Addr()},
	}
	for _, other := range p.Nodes {
		if other.Name != n.Name {
			routes = append(routes, route{other.Pods, other.Address.Addr()}, route{other.Pods6, other.Address6.Addr()})
		}
	}
	return routes
}

// joinSecond makes the bridge of the second network in a node.
func joinSecond() error {
	if err := addBridge(secondBridge); err != nil {
		return err
	}
	bridge, err := netlink.LinkByName(secondBridge)
	if err != nil {
		return err
	}
	link, err := netlink.LinkByName(secondLink)
	if err != nil {
		return err
	}
	if err := netlink.LinkSetMasterByIndex(link, bridge.Attrs().Index); err != nil {
		return fmt.Errorf("put %s into %s: %w", secondLink, secondBridge, err)
	}
	return up(secondLink)
}

func up(name string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("find link %s: %w", name, err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("set link %s up: %w", name, err)
	}
	return nil
}

func addAddress(name string, address netip.Prefix) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("find link %s: %w", name, err)
	}
	a := &netlink.Addr{IPNet: ipNet(address)}
	if err := netlink.AddrAdd(link, a); err != nil {
		return fmt.Errorf("add address %s to %s: %w", address, name, err)
	}
	return up(name)
}

func addRoute(to netip.Prefix, via netip.Addr, name string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("find link %s: %w", name, err)
	}
	route := &netlink.Route{LinkIndex: link.Attrs().Index, Dst: ipNet(to), Gw: via.AsSlice()}
	if err := netlink.RouteReplace(route); err != nil {
		return fmt.Errorf("add route %s via %s: %w", to, via, err)
	}
	return nil
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// settings lets this namespace forward packets, and use IPv6 addresses at once: each is
// given out once, so nothing is gained by looking for another owner of it for a second.
func settings() error {
	for _, s := range []struct{ name, value string }{
		{"ipv4/ip_forward", "1"},
		{"ipv6/conf/all/forwarding", "1"},
		{"ipv6/conf/all/accept_dad", "0"},
		{"ipv6/conf/default/accept_dad", "0"},
	} {
		if err := os.WriteFile("/proc/sys/net/"+s.name, []byte(s.value), 0o644); err != nil {
			return fmt.Errorf("set %s: %w", s.name, err)
		}
	}
	return nil
}
