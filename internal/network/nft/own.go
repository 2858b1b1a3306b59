package nft

import "github.com/podvisor/podvisor/network"

// A pod whose guest has the pod's own address connects to it from an address of the bridge,
// which nothing else has. The guest sends its answers to its router, as it does for every
// address that is not on its network: they are taken out of the way there.

// answersToPod is the chain that gives the pod what the guests answer it.
func answersToPod() chain {
	return chain{Name: "answers", Kind: "filter", Hook: prerouting, Priority: framesForPods}
}

// framesOfPod is the chain of what the pod itself sends.
func framesOfPod() chain {
	return chain{Name: "output", Kind: "filter", Hook: output, Priority: framesForPods}
}

// redirect gives the pod what the guest sends to the pod's address, whatever its MAC.
func (c *chain) redirect(f network.Filter) {
	c.add(takeIn(f.OwnMAC), from(f.Link), isIPv4, destination(f.Own))
}

// keepIn keeps what the pod sends on the bridge from all but the guest: also its questions
// for the guest's MAC, so that no other answers them.
func (c *chain) keepIn(f network.Filter) { c.add(drop, leaves(f.Uplink)) }

// ownPods adds, to the table for IPv4, that the pod gets answers and requests for addresses
// of guests that have the pod's address, and nothing else.
func ownPods(t *table, all []network.Filter) {
	c := chain{Name: "input", Kind: "filter", Hook: input, Priority: filtered}
	for _, f := range all {
		if f.Own.IsValid() {
			c.add(accept, from(f.Bridge), isAnswer)
			c.add(accept, from(f.Bridge), toPort("udp", 67))
			c.add(drop, from(f.Bridge))
		}
	}
	if len(c.Rules) > 0 {
		t.Family, t.Chains = ip, append(t.Chains, c)
	}
}
