package network

import (
	"net/netip"

	"github.com/podvisor/podvisor/vmi"
)

// bridgeServer is the address that the guest's DHCP offer comes from when the
// guest has the pod's own address.
var bridgeServer = netip.MustParseAddr("169.254.75.10")

// bridge hands the pod's interface over to the guest, with its MAC and its
// addresses:
//
//	eth0-nic ── k6t-eth0 ── tap0 ── guest        eth0 (stand-in)
//
// The stand-in keeps the pod's MAC and addresses: for those who look into the
// pod, for the network plugin that cleans up after it, and for the next plan. It
// is a bridge without ports, which leads nowhere; not every kernel has dummy
// links.
func (b binding) bridge() (Config, error) {
	mac := b.guestMAC(b.pod.mac)
	own := b.linkMAC(PodBridge)
	at := Attachment{Name: b.iface.Name, Tap: tapLink, MAC: mac, MTU: b.pod.mtu}
	bridge := LinkConfig{
		Name: PodBridge, Kind: Bridge, MAC: own, MTU: b.pod.mtu, Remember: b.pod.routes,
		Sysctls: []Sysctl{
			noLinkLocal(PodBridge),
			// The pod still has the guest's address. It shall neither claim it here
			// nor take the guest, which asks for its lease, for an impostor.
			{Key: "net/ipv4/conf/" + PodBridge + "/arp_ignore", Value: "1"},
			{Key: "net/ipv4/conf/" + PodBridge + "/accept_local", Value: "1"},
		},
	}
	if a, ok := first(b.pod.addresses, true); ok {
		bridge.Addresses = []netip.Prefix{netip.PrefixFrom(bridgeServer, 32)}
		at.DHCP = b.podOffer(a, mac)
	}
	return Config{
		// The order is what makes it safe to stop anywhere: the routes are
		// remembered and the stand-in holds the rest before the interface loses
		// anything.
		Links: []LinkConfig{
			bridge,
			b.tap(),
			{Name: podLink, Kind: Bridge, MAC: b.pod.mac, MTU: b.pod.mtu, Down: true, Addresses: b.pod.addresses},
			{
				Name: nicLink, Kind: Uplink, Index: b.pod.index, Master: PodBridge, NoLearning: true,
				// With the guest's MAC on this end of the bridge no frame would
				// reach the guest.
				MAC: own, Sysctls: []Sysctl{noLinkLocal(nicLink)},
			},
		},
		Attachments: []Attachment{at},
		Interfaces:  []vmi.InterfaceStatus{b.status(mac)},
	}, nil
}

// podOffer offers the guest the pod's address a and its routes.
func (b binding) podOffer(a netip.Prefix, mac string) *Offer {
	o := &Offer{
		Link: PodBridge, MAC: mac, MTU: b.pod.mtu, Server: bridgeServer,
		Address:  netip.PrefixFrom(a.Addr(), 32),
		Hostname: b.Instance.Hostname(), Subdomain: b.Instance.Spec.Subdomain,
	}
	var routes []Route
	for _, r := range b.pod.routes {
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
	for _, r := range routes {
		if !r.Gateway.IsValid() && r.Destination.Contains(a) {
			return true
		}
	}
	return false
}

func has(routes []Route, d netip.Prefix) bool {
	for _, r := range routes {
		if r.Destination == d {
			return true
		}
	}
	return false
}
