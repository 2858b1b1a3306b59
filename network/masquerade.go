package network

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/podvisor/podvisor/vmi"
)

// masqueradeBinding gives the guest a network of its own with the pod as its
// gateway, and translates between the guest's addresses and the pod's. On the pod
// network:
//
//	eth0 ── NAT ── k6t-eth0 (gateway) ── tap0 ── guest
//
// The guest reaches what the pod reaches on its networks, and of the pod itself
// what others reach by the pod's addresses: not its loopback, and the gateway only
// for addresses and echoes.
//
// +podvisor:entry
type masqueradeBinding struct{}

// Serves says that the interface has the masquerade binding.
func (masqueradeBinding) Serves(spec vmi.Interface) bool { return spec.Masquerade != nil }

// Bound says that the bridge has a gateway's address.
func (masqueradeBinding) Bound(i Interface) bool {
	b := i.State.Link(i.Names.Bridge)
	return b != nil && slices.ContainsFunc(b.Addresses, func(a netip.Prefix) bool { return !isServer(a) })
}

// Traits says that the guest has addresses of its own behind those of the pod.
func (masqueradeBinding) Traits() Traits { return Traits{Translated: true, Movable: true} }

// Plan returns the config for the interface.
func (masqueradeBinding) Plan(i Interface) (Config, error) {
	pod, err := i.Pod()
	if err != nil {
		return Config{}, err
	}
	guests, err := i.guests(pod)
	if err != nil {
		return Config{}, err
	}
	mac := i.MAC(MAC(i.Instance.UID, i.Spec.Name))
	bridge := LinkConfig{Name: i.Names.Bridge, Kind: Bridge, MAC: gatewayMAC, MTU: pod.MTU, ForwardGroups: true}
	uplink := LinkConfig{Name: i.Names.Pod, Kind: Uplink, Index: pod.Index}
	at := i.attachment(mac, pod.MTU)
	nat := NAT{Link: i.Names.Bridge, Guests: guests, Ports: ports(i.Spec), Loopback: i.Names.Pod == podLink}
	global := routedNotBridged()
	var addresses []netip.Addr
	var more []LinkConfig
	for _, g := range guests {
		addresses = append(addresses, g.Address)
		if at.Way == nil && i.Names.Pod == podLink {
			at.Way = &Way{Link: bridge.Name, From: g.Gateway, To: g.Address, Ports: nat.Ports}
		}
		bridge.Addresses = append(bridge.Addresses, netip.PrefixFrom(g.Gateway, g.Network.Bits()))
		if g.Address.Is6() {
			global = append(global, i.forwarding6(pod)...)
			bridge.Sysctls = append(bridge.Sysctls, linkLocalOfMAC(bridge.Name), notLearnt6(bridge.Name, "accept_ra"), notLearnt6(bridge.Name, "autoconf"))
			var tap LinkConfig
			at.DHCP6, tap = i.offer6(g, mac, pod.MTU)
			more = append(more, tap)
			continue
		}
		uplink.Sysctls = append(uplink.Sysctls, forwarding4(i.Names.Pod),
			// Other links of the pod have addresses of its guest, which may be on the
			// same segment: the pod must not answer for them here.
			Sysctl{Key: "net/ipv4/conf/" + i.Names.Pod + "/arp_ignore", Value: "1"})
		bridge.Sysctls = append(bridge.Sysctls, forwarding4(i.Names.Bridge))
		if nat.Loopback {
			// The answers to connections within the pod to 127.0.0.1 come from
			// this link.
			bridge.Sysctls = append(bridge.Sysctls, Sysctl{Key: "net/ipv4/conf/" + i.Names.Bridge + "/route_localnet", Value: "1"})
		}
		at.DHCP = &Offer{
			Link: i.Names.Bridge, MAC: mac, MTU: pod.MTU, Server: g.Gateway, Router: g.Gateway,
			Address:  netip.PrefixFrom(g.Address, g.Network.Bits()),
			Hostname: i.Instance.Hostname(), Subdomain: i.Instance.Spec.Subdomain, Options: i.Spec.DHCPOptions,
		}
	}
	if at.DHCP6 == nil {
		bridge.Sysctls = append(bridge.Sysctls, withoutIPv6(bridge.Name))
	}
	filter := i.Filter(mac, addresses)
	if at.DHCP6 != nil {
		filter.Router, filter.RouterMAC = at.DHCP6.Tap, at.DHCP6.RouterMAC
	}
	return Config{
		Links:       append([]LinkConfig{bridge, i.Tap(pod.MTU), uplink}, more...),
		Sysctls:     global,
		NAT:         []NAT{nat},
		Filters:     []Filter{filter},
		Attachments: []Attachment{at},
		Interfaces:  []vmi.InterfaceStatus{i.Status(mac, pod.Addresses)},
	}, nil
}

// guests returns the guest's addresses, one for each family that the pod's link
// has.
func (i Interface) guests(pod PodLink) ([]Guest, error) {
	var (
		guests []Guest
		faults []error
	)
	for _, f := range []struct {
		field  string
		subnet func() (netip.Prefix, error)
		is4    bool
	}{
		{"vmNetworkCIDR", i.Network.Pod.Subnet4, true},
		{"vmIPv6NetworkCIDR", i.Network.Pod.Subnet6, false},
	} {
		at := i.NetworkPath.Child("pod", f.field)
		n, err := f.subnet()
		if err != nil {
			faults = append(faults, invalid(at, "network %s: %s %v", i.Network.Name, f.field, err))
			continue
		}
		g := Guest{Network: n, Gateway: n.Addr().Next()}
		g.Address = g.Gateway.Next()
		for _, a := range pod.Addresses {
			if a.Addr().Is4() == f.is4 {
				g.Pod = append(g.Pod, a.Addr())
			}
		}
		if len(g.Pod) == 0 {
			continue
		}
		guests = append(guests, g)
		if link, a, ok := i.inUse(n); ok {
			faults = append(faults, invalid(at, "network %s: %s %s holds the address %s of the pod's link %s", i.Network.Name, f.field, n, a, link))
		}
	}
	if len(faults) == 0 && len(guests) == 0 {
		faults = append(faults, fmt.Errorf("the pod's link %s for network %s has no address", i.Names.Pod, i.Network.Name))
	}
	return guests, errors.Join(faults...)
}

// inUse returns an address in the network n that another link of the pod has
// than the bridge of this interface, and the name of that link.
func (i Interface) inUse(n netip.Prefix) (string, netip.Addr, bool) {
	for _, l := range i.State.Links {
		for _, a := range l.Addresses {
			if l.Name != i.Names.Bridge && n.Contains(a.Addr()) {
				return l.Name, a.Addr(), true
			}
		}
	}
	return "", netip.Addr{}, false
}

// ports returns the ports of a spec in order, each one once.
func ports(spec vmi.Interface) []Port {
	var out []Port
	for _, p := range spec.Ports {
		out = append(out, Port{Protocol: cmp.Or(p.Protocol, vmi.ProtocolTCP), Number: uint16(p.Port)})
	}
	for _, r := range spec.PortRanges {
		p := Port{Protocol: cmp.Or(r.Protocol, vmi.ProtocolTCP), Number: uint16(r.Start)}
		if r.End != r.Start {
			p.Last = uint16(r.End)
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b Port) int {
		return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Number, b.Number), cmp.Compare(a.Last, b.Last))
	})
	return slices.Compact(out)
}

func forwarding4(link string) Sysctl {
	return Sysctl{Key: "net/ipv4/conf/" + link + "/forwarding", Value: "1"}
}

// forwarding6 are the settings to forward IPv6, which is a matter of the whole
// namespace. A link of a host that forwards ignores router advertisements unless
// accept_ra is 2.
func (i Interface) forwarding6(pod PodLink) []Sysctl {
	var s []Sysctl
	if pod.AcceptsRA {
		s = append(s, Sysctl{Key: "net/ipv6/conf/" + i.Names.Pod + "/accept_ra", Value: "2"})
	}
	return append(s, Sysctl{Key: "net/ipv6/conf/all/forwarding", Value: "1"})
}

// routedNotBridged keeps the kernel from taking what a guest sends to its pod's
// address for traffic between ports of the bridge, where it would be lost. That
// happens where br_netfilter is loaded, as most nodes have it.
func routedNotBridged() []Sysctl {
	return []Sysctl{
		{Key: "net/bridge/bridge-nf-call-iptables", Value: "0", Optional: true},
		{Key: "net/bridge/bridge-nf-call-ip6tables", Value: "0", Optional: true},
	}
}
