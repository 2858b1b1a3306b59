package nft

import (
	"net/netip"

	"github.com/podvisor/podvisor/network"
)

// tableName is the name of the tables that are ours, one for each family.
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

// hook is where in the way of a packet a chain stands.
type hook string

const (
	prerouting  hook = "prerouting"
	output      hook = "output"
	postrouting hook = "postrouting"
)

// rule says what is done to which packets. A condition that is zero always
// holds.
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

// loopback is the address by which a pod speaks to itself. The kernel can send
// that of IPv4 elsewhere, if it is told to (route_localnet), but not that of
// IPv6.
var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// tables are the tables for an address translation.
func tables(n network.NAT) []table {
	var out []table
	for _, g := range n.Guests {
		fromOthers, fromPod := forwards(g, n.Ports, g.Pod), forwards(g, n.Ports, g.Pod)
		leaving := []rule{{From: g.Address, Verdict: masquerade}}
		if g.Address.Is4() {
			fromPod = forwards(g, n.Ports, append([]netip.Addr{loopback}, g.Pod...))
			// The guest would look for this sender within itself.
			leaving = append(leaving, rule{Out: n.Link, From: loopback, Verdict: snat, Address: g.Gateway})
		}
		out = append(out, table{IPv6: g.Address.Is6(), Chains: []chain{
			{prerouting, fromOthers}, {output, fromPod}, {postrouting, leaving},
		}})
	}
	return out
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
