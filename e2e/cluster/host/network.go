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
)

// makeSwitch sets up the network of the control plane: the bridge that all
// nodes are plugged into.
func makeSwitch(address netip.Prefix) error {
	if err := up("lo"); err != nil {
		return err
	}
	if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: bridgeLink}}); err != nil {
		return fmt.Errorf("add bridge: %w", err)
	}
	if err := addAddress(bridgeLink, address); err != nil {
		return err
	}
	// With forwarding, a packet to the outside is refused at once instead of
	// vanishing: the sender need not wait for a timeout.
	return forwarding()
}

// plug connects the node whose process 1 is pid.
func plug(n plan.Host, pid int) error {
	bridge, err := netlink.LinkByName(bridgeLink)
	if err != nil {
		return err
	}
	attrs := netlink.LinkAttrs{Name: n.Name, MasterIndex: bridge.Attrs().Index}
	veth := &netlink.Veth{LinkAttrs: attrs, PeerName: nodeLink, PeerNamespace: netlink.NsPid(pid)}
	if err := netlink.LinkAdd(veth); err != nil {
		return fmt.Errorf("connect node %s: %w", n.Name, err)
	}
	if err := up(n.Name); err != nil {
		return err
	}
	return addRoute(n.Pods, n.Address.Addr(), bridgeLink)
}

// unplug removes the node's link, if there is one. When a node dies, its end
// goes some time later by itself.
func unplug(n plan.Host) error {
	link, err := netlink.LinkByName(n.Name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := netlink.LinkDel(link); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("disconnect node %s: %w", n.Name, err)
	}
	return nil
}

// connect sets up the network of a node, from inside, as soon as it is plugged in.
func connect(ctx context.Context, n plan.Host, p plan.Plan) error {
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
	if err := addAddress(nodeLink, n.Address); err != nil {
		return err
	}
	if err := addRoute(netip.MustParsePrefix("0.0.0.0/0"), p.ControlPlane.Address.Addr(), nodeLink); err != nil {
		return err
	}
	for _, other := range p.Nodes {
		if other.Name == n.Name {
			continue
		}
		if err := addRoute(other.Pods, other.Address.Addr(), nodeLink); err != nil {
			return err
		}
	}
	return forwarding()
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

// forwarding lets this namespace forward packets.
func forwarding() error {
	return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644)
}
