package network

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/podvisor/podvisor/vmi"
)

// servers has the addresses that DHCP offers come from when the guest has the
// pod's own address: that of the first interface of a VMI ends with firstServer.
var servers = netip.MustParsePrefix("169.254.75.0/24")

const firstServer = 10

// bridgeBinding hands the pod's link over to the guest, with its MAC and its
// addresses. On the pod network:
//
//	eth0-nic ── k6t-eth0 ── tap0 ── guest        eth0 (stand-in)
//
// The stand-in keeps the pod's MAC and addresses: for programs that inspect the
// pod, for the network plugin that cleans up after it, and for the next plan. It
// is a bridge without ports, which leads nowhere; not every kernel has dummy
// links.
//
// The guest is where the pod was on a network with others, and may send what the
// pod could: from its MAC and its addresses. On a network that gives no addresses
// it may have any. On the pod network its MAC is the pod's: with another one of
// its choice it would get what is sent to others.
//
// +podvisor:entry
type bridgeBinding struct{}

// Serves says that the interface has the bridge binding.
func (bridgeBinding) Serves(spec vmi.Interface) bool { return spec.Bridge != nil }

// Bound says that the pod's link has a stand-in, or that the bridge has what
// only this binding puts there.
func (bridgeBinding) Bound(i Interface) bool {
	if i.State.Link(i.Names.NIC) != nil || i.standIn() != nil {
		return true
	}
	b := i.State.Link(i.Names.Bridge)
	return b != nil && (len(b.Remembered) > 0 || slices.ContainsFunc(b.Addresses, isServer))
}

// Traits says that the guest has the addresses of the pod.
func (bridgeBinding) Traits() Traits { return Traits{TakesOver: true} }

// Plan returns the config for the interface.
func (bridgeBinding) Plan(i Interface) (Config, error) {
	pod, err := i.Pod()
	if err != nil {
		return Config{}, err
	}
	mac := i.MAC(pod.MAC)
	// A guest that an earlier release let have another one keeps it.
	if i.Names.Pod == podLink && mac != pod.MAC && !(bridgeBinding{}).Bound(i) {
		return Config{}, invalid(i.Path.Child("macAddress"),
			"interface %s: MAC address %s is not %s, "+
				"which the pod has on this network and its guest takes over with the bridge binding: leave it out, or use masquerade", i.Spec.Name, mac, pod.MAC)
	}
	own := i.LinkMAC(i.Names.Bridge)
	filter := i.Filter(mac, hosts(pod.Addresses))
	filter.Uplink = i.Names.NIC
	// Policies of the pod network know the pod by its addresses.
	filter.Derived = i.Names.Pod != podLink
	at := i.attachment(mac, pod.MTU)
	bridge := LinkConfig{
		Name: i.Names.Bridge, Kind: Bridge, MAC: own, MTU: pod.MTU, ForwardGroups: true, Remember: slices.Concat(pod.Routes, i.routes6(pod)),
		Sysctls: []Sysctl{
			// It remembers routes of IPv6, which a link without IPv6 cannot.
			noLinkLocal(i.Names.Bridge), notLearnt6(i.Names.Bridge, "accept_ra"), notLearnt6(i.Names.Bridge, "autoconf"),
			// The pod still has the guest's address. It must neither answer for it
			// on this link nor drop the DHCP requests that the guest sends from it.
			{Key: "net/ipv4/conf/" + i.Names.Bridge + "/arp_ignore", Value: "1"},
			{Key: "net/ipv4/conf/" + i.Names.Bridge + "/accept_local", Value: "1"},
		},
	}
	if a, ok := first4(pod.Addresses); ok {
		server := i.server()
		bridge.Addresses = []netip.Prefix{server}
		at.DHCP = i.podOffer(pod, a, mac, server.Addr())
		if i.Names.Pod == podLink {
			at.Way = &Way{Link: bridge.Name, From: server.Addr(), To: a.Addr()}
			filter.Own, filter.OwnMAC, filter.Bridge = server.Addr(), own, bridge.Name
			// The answers have the pod's own address as their sender, which the pod has on
			// another link.
			bridge.Sysctls = append(bridge.Sysctls, Sysctl{Key: "net/ipv4/conf/" + bridge.Name + "/rp_filter", Value: "2"})
		}
	}
	var more []LinkConfig
	if o, tap, ok := i.podOffer6(pod, mac); ok {
		at.DHCP6, more = o, []LinkConfig{tap}
		filter.Router, filter.RouterMAC = o.Tap, o.RouterMAC
	}
	var global []Sysctl
	if at.Way != nil {
		global = routedNotBridged() // the pod knows connections, which what passes the bridge is none of
	}
	var notes []string
	if pod.RouterSilent {
		notes = append(notes, fmt.Sprintf("interface %s: the pod's router of IPv6 does not answer at a link-local address: "+
			"the guest gets no address of IPv6, and is to be configured with the pod's", i.Spec.Name))
	}
	return Config{
		// The order is what makes it safe to stop anywhere: the routes are
		// remembered and the stand-in holds the rest before the pod's link loses
		// anything.
		Links: append([]LinkConfig{
			bridge,
			i.Tap(pod.MTU),
			{Name: i.Names.Pod, Interim: i.Names.Interim, Kind: Bridge, MAC: pod.MAC, MTU: pod.MTU, Down: true, Addresses: pod.Addresses},
			i.nic(pod, mac, own),
		}, more...),
		Sysctls:     global,
		Filters:     []Filter{filter},
		Attachments: []Attachment{at},
		Interfaces:  []vmi.InterfaceStatus{i.Status(mac, pod.Addresses)},
		Notes:       notes,
	}, nil
}

// nic is the pod's link as a port of the bridge. With the guest's MAC no frame would
// reach the guest, since the frames for a port's own address are the pod's; so it has
// another one. Only a macvlan link has the guest's, since it gets frames for its own
// address alone, and the tap device gets those.
func (i Interface) nic(pod PodLink, guest, own string) LinkConfig {
	l := LinkConfig{
		Name: i.Names.NIC, Kind: Uplink, Index: pod.Index, Master: i.Names.Bridge, NoLearning: true,
		MAC: own, Sysctls: []Sysctl{withoutIPv6(i.Names.NIC)},
	}
	if pod.Kind == Macvlan {
		l.MAC, l.FramesTo = guest, i.Names.Tap
	}
	return l
}

// server is the address that the interface's DHCP offers come from: the one that
// its bridge has, since the number of an interface changes when one before it is
// detached, or else the one of its number.
func (i Interface) server() netip.Prefix {
	if b := i.State.Link(i.Names.Bridge); b != nil {
		if n := slices.IndexFunc(b.Addresses, isServer); n >= 0 {
			return b.Addresses[n]
		}
	}
	a := servers.Addr().As4()
	a[3] = firstServer + byte(i.Index)
	return netip.PrefixFrom(netip.AddrFrom4(a), 32)
}

func isServer(p netip.Prefix) bool { return p.IsSingleIP() && servers.Contains(p.Addr()) }

// podOffer offers the guest the pod's address a and its routes.
func (i Interface) podOffer(pod PodLink, a netip.Prefix, mac string, server netip.Addr) *Offer {
	o := &Offer{
		Link: i.Names.Bridge, MAC: mac, MTU: pod.MTU, Server: server,
		Address:  netip.PrefixFrom(a.Addr(), 32),
		Hostname: i.Instance.Hostname(), Subdomain: i.Instance.Spec.Subdomain, Options: i.Spec.DHCPOptions,
	}
	var routes []Route
	for _, r := range pod.Routes {
		switch {
		case r.Destination == a.Masked() && !r.Gateway.IsValid():
			// The pod's network is on the link, which not every pod's is.
			o.Address = a
		default:
			routes = append(routes, r)
		}
	}
	for _, r := range routes {
		if r.Destination.Bits() == 0 {
			o.Router = r.Gateway
		}
	}
	routes = reachable(o.Address, routes)
	if len(routes) == 1 && o.Router.IsValid() {
		return o
	}
	o.Routes = routes
	return o
}

// reachable puts a route on the link before the routes whose gateway could not
// be reached otherwise.
func reachable(own netip.Prefix, routes []Route) []Route {
	var out []Route
	for _, r := range routes {
		to := r.Gateway
		if to.IsValid() && !own.Contains(to) && !onLink(out, to) && !onLink(routes, to) {
			out = append(out, Route{Destination: netip.PrefixFrom(to, to.BitLen())})
		}
		out = append(out, r)
	}
	return out
}

// onLink says that a is reached by one of the routes without a gateway.
func onLink(routes []Route, a netip.Addr) bool {
	return slices.ContainsFunc(routes, func(r Route) bool { return !r.Gateway.IsValid() && r.Destination.Contains(a) })
}

// hosts are the addresses without the lengths of their networks.
func hosts(in []netip.Prefix) []netip.Addr {
	var out []netip.Addr
	for _, p := range in {
		out = append(out, p.Addr())
	}
	return out
}

// first4 returns the first IPv4 address.
func first4(addresses []netip.Prefix) (netip.Prefix, bool) {
	for _, a := range addresses {
		if a.Addr().Is4() {
			return a, true
		}
	}
	return netip.Prefix{}, false
}
