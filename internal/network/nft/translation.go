package nft

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/podvisor/podvisor/network"
)

// loopback is the address by which a pod connects to itself. With route_localnet
// the kernel routes that of IPv4 to other links, but not that of IPv6.
var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// translation is the table of a family for the guests that the pod routes for. It
// has no chains if there are none.
func translation(f family, all []network.NAT) table {
	t := table{Family: f, Chains: []chain{
		{Name: "guest", Kind: "filter", Hook: prerouting, Priority: filtered},
		{Name: "prerouting", Kind: "nat", Hook: prerouting, Priority: destinations},
		{Name: "output", Kind: "nat", Hook: output, Priority: destinations},
		{Name: "postrouting", Kind: "nat", Hook: postrouting, Priority: sources},
		{Name: "local", Kind: "filter", Hook: input, Priority: filtered},
	}}
	closed := slices.Clone(closedIn[f])
	for _, n := range all {
		for _, g := range n.Guests {
			if g.Address.Is6() == (f == ip6) {
				closed = append(closed, g.Network)
			}
		}
	}
	found := false
	for _, n := range all {
		for _, g := range n.Guests {
			if g.Address.Is6() == (f == ip6) {
				found = true
				t.Chains[0].protect(n.Link, g, closed)
				t.Chains[4].deliver(n.Link, g)
				t.translate(n, g)
			}
		}
	}
	if !found {
		return table{}
	}
	return t
}

// closedIn are the networks that a guest sends nothing into: those for several
// receivers, which are never routed, and those in which only the pod itself is.
var closedIn = map[family][]netip.Prefix{
	ip:  {netip.MustParsePrefix("169.254.75.0/24"), groups4},
	ip6: {netip.MustParsePrefix("fe80::/10"), groups6},
}

// ownLoopback are the addresses of the pod's loopback, and for IPv6 those that
// stand for addresses of IPv4.
var ownLoopback = map[family]netip.Prefix{
	ip:  netip.MustParsePrefix("127.0.0.0/8"),
	ip6: netip.MustParsePrefix("::/80"),
}

// protect keeps what the guest sends from the pod itself, as far as others could
// not send it: except for answers, echoes and requests for addresses.
func (c *chain) protect(link string, g network.Guest, closed []netip.Prefix) {
	if g.Address.Is6() {
		c.add(drop, from(link), into(ownLoopback[ip6]))
	} else {
		c.add(drop, from(link), into(ownLoopback[ip]))
	}
	c.permit(link, g)
	for _, n := range closed {
		c.add(drop, from(link), into(n))
	}
}

// permit adds what the pod itself gets of its guest.
func (c *chain) permit(link string, g network.Guest) {
	c.add(accept, from(link), isAnswer)
	if g.Address.Is6() {
		c.add(accept, from(link), carries("ipv6-icmp"))
		return
	}
	c.add(accept, from(link), destination(g.Gateway), carries("icmp"))
	c.add(accept, from(link), toPort("udp", 67))
}

// deliver adds what reaches the pod itself: beside that, what is for an address of the pod, as
// others send it. The pod has more: to those for everyone and for any router on its network,
// which no policy sees, others send nothing.
func (c *chain) deliver(link string, g network.Guest) {
	c.permit(link, g)
	for _, a := range g.Pod {
		c.add(accept, from(link), destination(a))
	}
	c.add(drop, from(link))
}

// translate adds the rules for an address of a guest after those that are there.
func (t *table) translate(n network.NAT, g network.Guest) {
	in, out, leaving := &t.Chains[1], &t.Chains[2], &t.Chains[3]
	in.forward(g, n.Ports, g.Pod)
	leaving.add(masquerade, sender(g.Address))
	if n.Loopback && g.Address.Is4() {
		out.forward(g, n.Ports, []netip.Addr{loopback})
		// The guest takes packets from this sender for its own.
		leaving.add(snat(g.Gateway), leaves(n.Link), sender(loopback))
	}
	out.forward(g, n.Ports, g.Pod)
}

// forward sends to the guest what is sent to one of the addresses and is the
// guest's.
func (c *chain) forward(g network.Guest, ports []network.Port, to []netip.Addr) {
	for _, a := range to {
		if len(ports) == 0 {
			c.add(dnat(g.Address), destination(a))
			continue
		}
		for _, protocol := range []string{"tcp", "udp"} {
			single, ranges := of(ports, protocol)
			if len(single) > 0 {
				c.add(dnat(g.Address), destination(a), toPort(protocol, single...))
			}
			for _, r := range ranges {
				c.add(dnat(g.Address), destination(a), toPorts(protocol, r.Number, r.Last))
			}
		}
	}
}

// of are the ports of a protocol: the numbers of single ones, and the ranges.
func of(ports []network.Port, protocol string) (single []uint16, ranges []network.Port) {
	for _, p := range ports {
		switch {
		case !strings.EqualFold(p.Protocol, protocol):
		case p.Last != 0:
			ranges = append(ranges, p)
		default:
			single = append(single, p.Number)
		}
	}
	return single, ranges
}
