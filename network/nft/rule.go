package nft

import (
	"net/netip"

	"github.com/podvisor/podvisor/network"
)

// tableName is the name of our tables, one for each family.
const tableName = "podvisor"

// table is a table of rules: the one description that the text and what is sent
// to the kernel are made of.
type table struct {
	// IPv6 says which family the table is for: ip6, or else ip.
	IPv6   bool
	Chains []chain
}

// chain is a chain of a table. Its name is that of its hook.
type chain struct {
	Hook  hook
	Rules []rule
}

// hook is the point in a packet's path where a chain is.
type hook string

const (
	prerouting  hook = "prerouting"
	output      hook = "output"
	postrouting hook = "postrouting"
)

// rule says which packets are translated and how. A condition that is zero is
// met by every packet.
type rule struct {
	// Out is the link that the packet leaves by.
	Out string
	// From and To are the packet's addresses.
	From, To netip.Addr
	// Protocol and Ports are where the packet is sent to. Ports are in order.
	Protocol string
	Ports    []uint16
	Verdict  verdict
	// Address is the one that a translation puts into the packet.
	Address netip.Addr
}

// verdict is what is done to a packet.
type verdict string

const (
	dnat       verdict = "dnat"
	snat       verdict = "snat"
	masquerade verdict = "masquerade"
)

// loopback is the address by which a pod connects to itself. With route_localnet
// the kernel routes that of IPv4 to other links, but not that of IPv6.
var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// tables are the tables for the address translations of a pod, at most one of
// each family.
func tables(all []network.NAT) []table {
	var out []table
	for _, v6 := range []bool{false, true} {
		t := table{IPv6: v6, Chains: []chain{{Hook: prerouting}, {Hook: output}, {Hook: postrouting}}}
		for _, n := range all {
			for _, g := range n.Guests {
				if g.Address.Is6() == v6 {
					t.translate(n, g)
				}
			}
		}
		if len(t.Chains[0].Rules) > 0 {
			out = append(out, t)
		}
	}
	return out
}

// translate adds the rules for an address of a guest after those that are there.
func (t *table) translate(n network.NAT, g network.Guest) {
	fromPod := g.Pod
	leaving := []rule{{From: g.Address, Verdict: masquerade}}
	if n.Loopback && g.Address.Is4() {
		fromPod = append([]netip.Addr{loopback}, g.Pod...)
		// The guest takes packets from this sender for its own.
		leaving = append(leaving, rule{Out: n.Link, From: loopback, Verdict: snat, Address: g.Gateway})
	}
	for i, rules := range [][]rule{forwards(g, n.Ports, g.Pod), forwards(g, n.Ports, fromPod), leaving} {
		t.Chains[i].Rules = append(t.Chains[i].Rules, rules...)
	}
}

// forwards are the rules that send to the guest what is sent to one of the
// addresses and is the guest's.
func forwards(g network.Guest, ports []network.Port, to []netip.Addr) []rule {
	var rules []rule
	for _, a := range to {
		if len(ports) == 0 {
			rules = append(rules, rule{To: a, Verdict: dnat, Address: g.Address})
			continue
		}
		for _, protocol := range []string{"tcp", "udp"} {
			if p := numbers(ports, protocol); len(p) > 0 {
				rules = append(rules, rule{To: a, Protocol: protocol, Ports: p, Verdict: dnat, Address: g.Address})
			}
		}
	}
	return rules
}
