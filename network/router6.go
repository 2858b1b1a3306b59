package network

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/podvisor/podvisor/vmi"
)

// RoutedLink is the name of the pod's link on whose [Link.RouterMAC] the plan for the VMI
// depends: a guest that takes over the pod's address on the pod network has the pod's router
// for its own. Among are the bindings; nil: [Bindings]. Empty: there is none.
func RoutedLink(v *vmi.VirtualMachineInstance, among []Binding) string {
	for _, n := range v.Spec.Networks {
		if PodLinkName(n) == podLink && slices.ContainsFunc(v.Spec.Domain.Devices.Interfaces, func(i vmi.Interface) bool {
			return i.Name == n.Name && TraitsOf(i, among).TakesOver && i.State != vmi.InterfaceAbsent
		}) {
			return podLink
		}
	}
	return ""
}

// podOffer6 offers a bridged guest the pod's address of IPv6 and the pod's router, and
// returns the tap device that the offer is made by. The router itself answers at the
// address that is offered, so the guest's frames go to it directly, and so do its
// questions whether it is still there.
func (i Interface) podOffer6(pod PodLink, mac string) (*Offer6, LinkConfig, bool) {
	a, ok := first6(pod.Addresses)
	if !ok || pod.RouterMAC == "" || i.Names.Pod != podLink {
		return nil, LinkConfig{}, false
	}
	if !pod.OnLink6 {
		a = netip.PrefixFrom(a.Addr(), a.Addr().BitLen())
	}
	o, tap := i.offer6(Guest{Address: a.Addr(), Network: a}, mac, pod.MTU)
	o.Router, o.RouterMAC = pod.Router, pod.RouterMAC
	// The router's address is not learnt: all that is sent to it would come by here too.
	tap.NoFlooding = true
	return o, tap, true
}

// routes6 are what is remembered of the pod's routes of IPv6: the router's link-local
// address and the network that is on the link. Another address than the one that the
// router's MAC makes is remembered with that one for its gateway.
func (i Interface) routes6(pod PodLink) []Route {
	a, ok := first6(pod.Addresses)
	if !ok || pod.RouterMAC == "" || i.Names.Pod != podLink {
		return nil
	}
	router := Route{Destination: netip.PrefixFrom(pod.Router, pod.Router.BitLen())}
	if made := LinkLocal(pod.RouterMAC); made != pod.Router {
		router.Gateway = made
	}
	out := []Route{router}
	if pod.OnLink6 {
		out = append(out, Route{Destination: a.Masked()})
	}
	return out
}

// rememberedRouter is the link-local address and the MAC address of the router that is
// among remembered routes.
func rememberedRouter(routes []Route) (netip.Addr, string) {
	for _, r := range routes {
		a := r.Destination.Addr()
		if !a.Is6() || !a.IsLinkLocalUnicast() || !r.Destination.IsSingleIP() {
			continue
		}
		if r.Gateway.IsValid() {
			return a, macOf(r.Gateway)
		}
		return a, macOf(a)
	}
	return netip.Addr{}, ""
}

// macOf is the MAC address that makes the link-local address. Empty: none does.
func macOf(a netip.Addr) string {
	b := a.As16()
	if b[11] != 0xff || b[12] != 0xfe {
		return ""
	}
	mac := fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", b[8]^2, b[9], b[10], b[13], b[14], b[15])
	if LinkLocal(mac) != a {
		return ""
	}
	return mac
}

// onLink6 says that the network of the first address of IPv6 is reached without a router.
func onLink6(addresses []netip.Prefix, routes []Route) bool {
	a, ok := first6(addresses)
	return ok && slices.Contains(routes, Route{Destination: a.Masked()})
}

// first6 returns the first IPv6 address.
func first6(addresses []netip.Prefix) (netip.Prefix, bool) {
	n := slices.IndexFunc(addresses, func(a netip.Prefix) bool { return a.Addr().Is6() })
	if n < 0 {
		return netip.Prefix{}, false
	}
	return addresses[n], true
}
