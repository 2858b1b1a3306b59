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
	Family family
	Chains []chain
}

// family is the kind of packets that a table is for, as nft writes it.
type family string

const (
	ip     family = "ip"
	ip6    family = "ip6"
	bridge family = "bridge"
)

// chain is a chain of a table. One without a hook has only the packets that rules
// of other chains send there.
type chain struct {
	Name string
	// Kind is what the kernel lets the rules do: filter or nat.
	Kind     string
	Hook     hook
	Priority int
	Rules    []rule
}

// hook is the point in a packet's path where a chain is.
type hook string

const (
	prerouting  hook = "prerouting"
	input       hook = "input"
	forward     hook = "forward"
	output      hook = "output"
	postrouting hook = "postrouting"
)

// The priorities of our chains: packets are filtered when their connection is
// known and before they are translated, and those that should not come at all before
// that; frames before anything else.
const (
	filtered      = -150
	destinations  = -100
	sources       = 100
	raw           = -300
	frames        = -300
	framesForPods = -200
)

// rule says what is done to the packets that meet all conditions.
type rule struct {
	If   []match
	Then verdict
}

// verdict is what is done to a packet.
type verdict struct {
	Kind string
	// Chain is where the packet goes.
	Chain string
	// Address is the one that a translation puts into the packet.
	Address netip.Addr
	// MAC is what a frame is sent to instead.
	MAC string
}

var (
	accept     = verdict{Kind: "accept"}
	drop       = verdict{Kind: "drop"}
	back       = verdict{Kind: "return"}
	masquerade = verdict{Kind: "masquerade"}
)

// call sends a packet to another chain, and it comes back if no rule there has a
// verdict for it; send does not take it back.
func call(chain string) verdict { return verdict{Kind: "jump", Chain: chain} }
func send(chain string) verdict { return verdict{Kind: "goto", Chain: chain} }

func dnat(to netip.Addr) verdict { return verdict{Kind: "dnat", Address: to} }
func snat(to netip.Addr) verdict { return verdict{Kind: "snat", Address: to} }

// takeIn gives a frame to the bridge with this MAC address, which is not a port.
func takeIn(mac string) verdict { return verdict{Kind: "ether daddr set", MAC: mac} }

// add adds a rule to a chain.
func (c *chain) add(then verdict, conditions ...match) {
	c.Rules = append(c.Rules, rule{If: conditions, Then: then})
}

// tables are the tables for a pod, at most one of each family.
func tables(cfg network.Config) []table {
	var out []table
	for _, f := range []family{ip, ip6} {
		t := translation(f, cfg.NAT)
		if len(cfg.Filters) > 0 {
			t = table{Family: f, Chains: append([]chain{pastBridges(cfg.Filters)}, t.Chains...)}
		}
		if f == ip {
			ownPods(&t, cfg.Filters)
		}
		if len(t.Chains) > 0 {
			out = append(out, t)
		}
	}
	if len(cfg.Filters) > 0 {
		out = append(out, filters(cfg.Filters))
	}
	return out
}
