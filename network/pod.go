package network

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// pod is what a pod was given by its network before anything was plumbed.
type pod struct {
	// index of the interface, whatever its name is now.
	index     int
	mac       string
	mtu       int
	addresses []netip.Prefix
	// routes of IPv4, one for each destination, in the order of [sortRoutes].
	routes    []Route
	acceptsRA bool
}

// findPod reads the pod's interface out of a namespace that may be plumbed
// already.
//
//	what is there                                 where the truth is
//	eth0 is the pod's own and up      in eth0: nothing was taken from it yet
//	eth0 is the pod's own and down    in the copy: eth0 was about to be renamed
//	eth0-nic                          in the copy
//
// The copy is the stand-in, which is eth0 in the end, with the MAC and the
// addresses, and the remembered routes of the bridge. It is complete before the
// interface is set down, which is the first thing that takes something from it.
func findPod(s State) (pod, error) {
	nic := s.link(nicLink)
	if e := s.link(podLink); nic == nil && e != nil && e.Kind != string(Bridge) {
		nic = e
	}
	if nic == nil {
		return pod{}, errors.New("the pod has no interface " + podLink)
	}
	p := pod{index: nic.Index, mac: nic.MAC, mtu: nic.MTU, addresses: nic.Addresses, routes: sortRoutes(nic.Routes), acceptsRA: nic.AcceptsRA}
	if nic.Name == podLink && nic.Up {
		return p, nil
	}
	copied, bridge := s.standIn(), s.link(PodBridge)
	if copied == nil || bridge == nil {
		return pod{}, fmt.Errorf("the pod's interface %s is down", nic.Name)
	}
	p.mac, p.addresses, p.routes = copied.MAC, copied.Addresses, sortRoutes(bridge.Remembered)
	return p, nil
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

// standIn returns the link that has, or is to get, the name of the pod's
// interface but is not that one.
func (s State) standIn() *Link {
	for _, name := range []string{podLink, Interim(podLink)} {
		if l := s.link(name); l != nil && l.Kind == string(Bridge) {
			return l
		}
	}
	return nil
}

// Interim is the name that a link has until the link that has its name gives it
// up.
func Interim(name string) string { return name + "-new" }
