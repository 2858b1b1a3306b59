package network

import (
	"cmp"
	"errors"
	"net/netip"
	"slices"

	"github.com/podvisor/podvisor/vmi"
)

// The networks between a pod and its guest, unless the spec has others.
const (
	guestNetwork4 = "10.0.2.0/24"
	guestNetwork6 = "fd10:0:2::/120"
)

// masquerade gives the guest a network of its own with the pod as its gateway,
// and lets the pod's addresses stand for the guest's:
//
//	eth0 ── NAT ── k6t-eth0 (gateway) ── tap0 ── guest
func (b binding) masquerade() (Config, error) {
	guests, lengths, err := b.guests()
	if err != nil {
		return Config{}, err
	}
	mac := b.guestMAC(MAC(b.Instance.UID, b.iface.Name))
	if mac == gatewayMAC {
		return Config{}, invalid("interface %s: MAC address %s is the gateway's", b.iface.Name, mac)
	}
	bridge := LinkConfig{Name: PodBridge, Kind: Bridge, MAC: gatewayMAC, MTU: b.pod.mtu}
	uplink := LinkConfig{Name: podLink, Kind: Uplink, Index: b.pod.index}
	at := Attachment{Name: b.iface.Name, Tap: tapLink, MAC: mac, MTU: b.pod.mtu}
	global := routedNotBridged()
	for i, g := range guests {
		gateway := netip.PrefixFrom(g.Gateway, lengths[i])
		bridge.Addresses = append(bridge.Addresses, gateway)
		if g.Address.Is6() {
			global = append(global, forwarding6(b.pod)...)
			continue
		}
		uplink.Sysctls = append(uplink.Sysctls, forwarding4(podLink))
		// Connections within the pod to 127.0.0.1 are the guest's too, and the
		// answers to them come from this link.
		bridge.Sysctls = append(bridge.Sysctls, forwarding4(PodBridge), Sysctl{Key: "net/ipv4/conf/" + PodBridge + "/route_localnet", Value: "1"})
		at.DHCP = &Offer{
			Link: PodBridge, MAC: mac, MTU: b.pod.mtu, Server: g.Gateway, Router: g.Gateway,
			Address:  netip.PrefixFrom(g.Address, lengths[i]),
			Hostname: b.Instance.Hostname(), Subdomain: b.Instance.Spec.Subdomain,
		}
	}
	return Config{
		Links:       []LinkConfig{bridge, b.tap(), uplink},
		Sysctls:     global,
		NAT:         NAT{Link: PodBridge, Guests: guests, Ports: ports(b.iface.Ports)},
		Attachments: []Attachment{at},
		Interfaces:  []vmi.InterfaceStatus{b.status(mac)},
	}, nil
}

// guests returns the guest's addresses, one for each family that the pod has,
// and the lengths of their networks.
func (b binding) guests() ([]Guest, []int, error) {
	var (
		guests  []Guest
		lengths []int
		faults  []error
	)
	for _, f := range []struct {
		field, cidr string
		is4         bool
		bits        int
	}{
		{"vmNetworkCIDR", cmp.Or(b.network.VMNetworkCIDR, guestNetwork4), true, 30},
		{"vmIPv6NetworkCIDR", cmp.Or(b.network.VMIPv6NetworkCIDR, guestNetwork6), false, 126},
	} {
		n, err := netip.ParsePrefix(f.cidr)
		if err != nil || n.Addr().Is4() != f.is4 || n.Addr().Is4In6() || n.Bits() > f.bits {
			faults = append(faults, invalid("network %s: %s %s is not a network with room for two hosts", b.iface.Name, f.field, f.cidr))
			continue
		}
		g := Guest{Gateway: n.Masked().Addr().Next()}
		g.Address = g.Gateway.Next()
		for _, a := range b.pod.addresses {
			if n.Contains(a.Addr()) {
				faults = append(faults, invalid("network %s: %s %s holds the pod's own address %s", b.iface.Name, f.field, f.cidr, a.Addr()))
			}
			if a.Addr().Is4() == f.is4 {
				g.Pod = append(g.Pod, a.Addr())
			}
		}
		if len(g.Pod) > 0 {
			guests, lengths = append(guests, g), append(lengths, n.Bits())
		}
	}
	if len(faults) == 0 && len(guests) == 0 {
		faults = append(faults, errors.New("the pod's interface "+podLink+" has no address"))
	}
	return guests, lengths, errors.Join(faults...)
}

// ports returns the ports of a spec in order, each one once.
func ports(in []vmi.Port) []Port {
	var out []Port
	for _, p := range in {
		out = append(out, Port{Protocol: cmp.Or(p.Protocol, "TCP"), Number: uint16(p.Port)})
	}
	slices.SortFunc(out, func(a, b Port) int {
		return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Number, b.Number))
	})
	return slices.Compact(out)
}

func forwarding4(link string) Sysctl {
	return Sysctl{Key: "net/ipv4/conf/" + link + "/forwarding", Value: "1"}
}

// forwarding6 are the settings to forward IPv6, which is a matter of the whole
// namespace. A host that forwards does not listen to router advertisements
// unless it is told twice.
func forwarding6(p pod) []Sysctl {
	var s []Sysctl
	if p.acceptsRA {
		s = append(s, Sysctl{Key: "net/ipv6/conf/" + podLink + "/accept_ra", Value: "2"})
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
