package network

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
)

// PodLink is a link that a network plugin gave a pod, as it was before it was
// bound.
type PodLink struct {
	// Index of the link, whatever its name is now.
	Index int
	// Kind is the kernel's name of the kind of link, as in [Link].
	Kind string
	MAC  string
	// MTU in bytes.
	MTU int
	// Addresses are the link's addresses, IPv4 first. They may be none.
	Addresses []netip.Prefix
	// Routes are those of IPv4, one for each destination, in an order in which
	// they can be made.
	Routes []Route
	// Router and RouterMAC are the addresses of the default router of IPv6, as in [Link].
	Router       netip.Addr
	RouterMAC    string
	RouterSilent bool
	// OnLink6 says that the network of the first IPv6 address is reached without a router.
	OnLink6 bool
	// AcceptsRA says that the link takes routes from IPv6 router advertisements.
	AcceptsRA bool
}

// Pod returns the pod's link of the interface, which may be bound already:
//
//	what is there                        where it is read
//	the link has its own name, is up     in the link: nothing was taken from it yet
//	the link has its own name, is down   in the copy: the link was about to be renamed
//	the link has the name [Names].NIC    in the copy
//
// The copy is the stand-in, which has the link's name in the end, with the MAC
// and the addresses, and the remembered routes of the bridge. It is complete
// before the link is set down, which is the first step that takes something from
// the link. An error says that there is no such link, or that it is not up yet.
func (i Interface) Pod() (PodLink, error) {
	nic := i.State.Link(i.Names.NIC)
	if l := i.State.Link(i.Names.Pod); nic == nil && l != nil && l.Kind != string(Bridge) {
		nic = l
	}
	if nic == nil {
		return PodLink{}, fmt.Errorf("the pod has no link %s for network %s", i.Names.Pod, i.Network.Name)
	}
	p := PodLink{Index: nic.Index, Kind: nic.Kind, MAC: nic.MAC, MTU: nic.MTU, Addresses: nic.Addresses, Routes: sortRoutes(nic.Routes), AcceptsRA: nic.AcceptsRA}
	if nic.Name == i.Names.Pod && nic.Up {
		p.Router, p.RouterMAC, p.RouterSilent = nic.Router, nic.RouterMAC, nic.RouterSilent
		p.OnLink6 = onLink6(p.Addresses, nic.Routes)
		return p, nil
	}
	copied, bridge := i.standIn(), i.State.Link(i.Names.Bridge)
	if copied == nil || bridge == nil {
		return PodLink{}, fmt.Errorf("the pod's link %s for network %s is down", nic.Name, i.Network.Name)
	}
	p.MAC, p.Addresses, p.Routes = copied.MAC, copied.Addresses, sortRoutes(bridge.Remembered)
	p.Router, p.RouterMAC = rememberedRouter(bridge.Remembered)
	p.OnLink6 = onLink6(p.Addresses, bridge.Remembered)
	return p, nil
}

// standIn returns the link that has, or is to get, the name of the pod's link but
// is not that one.
func (i Interface) standIn() *Link {
	for _, name := range []string{i.Names.Pod, i.Names.Interim} {
		if l := i.State.Link(name); l != nil && l.Kind == string(Bridge) {
			return l
		}
	}
	return nil
}

// sortRoutes returns the best route of IPv4 for each destination, in an order in
// which they can be made: those on the link before those that need them, and the
// default one last.
func sortRoutes(in []Route) []Route {
	var out []Route
	for _, r := range in {
		if r.Destination.Addr().Is4() && !has(out, r.Destination) {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b Route) int {
		return cmp.Or(
			cmp.Compare(rank(a), rank(b)),
			cmp.Compare(b.Destination.Bits(), a.Destination.Bits()),
			a.Destination.Addr().Compare(b.Destination.Addr()),
		)
	})
	return out
}

// rank puts routes on the link first.
func rank(r Route) int {
	if r.Gateway.IsValid() {
		return 1
	}
	return 0
}

func has(routes []Route, d netip.Prefix) bool {
	return slices.ContainsFunc(routes, func(r Route) bool { return r.Destination == d })
}
