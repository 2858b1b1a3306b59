package nft

import (
	"net/netip"

	"github.com/podvisor/podvisor/network"
)

// filters is the table of frames for what the guests may send. Each guest has a
// chain of the name of its link, which drops what it does not accept, and chains
// for the messages of IPv6's neighbour discovery.
func filters(all []network.Filter) table {
	ingress := chain{Name: "prerouting", Kind: "filter", Hook: prerouting, Priority: frames}
	toPod := chain{Name: "input", Kind: "filter", Hook: input, Priority: framesForPods}
	var guests []chain
	for _, f := range all {
		ingress.add(send(f.Link), from(f.Link))
		if f.Uplink != "" {
			toPod.addPod(f)
		}
		if f.Router != "" {
			ingress.add(send(f.Router), from(f.Router))
			toPod.add(drop, from(f.Router))
			guests = append(guests, router(f))
		}
		g := guest{f}
		guests = append(guests, g.all(), g.solicits(), g.probes(), g.advertises(), g.seeksRouters())
	}
	return table{Family: bridge, Chains: append([]chain{ingress, toPod}, guests...)}
}

// addPod adds what reaches the pod itself, which is not on this network.
func (c *chain) addPod(f network.Filter) {
	c.add(accept, from(f.Link), isARP)
	c.add(accept, from(f.Link), isIPv4, toPort("udp", 67))
	c.add(drop, from(f.Link))
	c.add(drop, from(f.Uplink))
}

// router is what the launcher may send a guest as its router.
func router(f network.Filter) chain {
	c := chain{Name: f.Router}
	c.add(drop, notFrom(f.RouterMAC))
	if f.Uplink != "" { // others are behind it
		c.add(drop, toOthers(f.MAC))
	}
	c.add(accept, isIPv6, icmp6(routerAdvert))
	c.add(accept, isIPv6, fromPort("udp", 547), toPort("udp", 546))
	c.add(drop)
	return c
}

// guest is what one guest may send.
type guest struct{ network.Filter }

func (g guest) addresses(v6 bool) []netip.Addr {
	var out []netip.Addr
	for _, a := range g.Addresses {
		if a.Is6() == v6 {
			out = append(out, a)
		}
	}
	return out
}

// free says that the guest may have any address.
func (g guest) free() bool { return len(g.Addresses) == 0 }

// all is the guest's chain.
func (g guest) all() chain {
	c := chain{Name: g.Link}
	c.add(drop, notFrom(g.MAC))
	g.ipv4(&c)
	g.ipv6(&c)
	g.arp(&c)
	c.add(drop)
	return c
}

var (
	unspecified4 = netip.IPv4Unspecified()
	unspecified6 = netip.IPv6Unspecified()
	broadcast4   = netip.AddrFrom4([4]byte{255, 255, 255, 255})
)

// ipv4 lets packets of IPv4 through.
func (g guest) ipv4(c *chain) {
	const clientMAC = 36 // after the header of UDP and 28 bytes
	c.add(accept, isIPv4, sender(unspecified4), destination(broadcast4), fromPort("udp", 68), toPort("udp", 67), part(clientMAC, bytesOf(g.MAC)))
	for _, own := range g.own4() {
		c.add(accept, append([]match{isIPv4, isLaterFragment4}, own...)...)
	}
	c.add(drop, isIPv4, fromPort("udp", 67))
	c.add(drop, isIPv4, toPort("udp", 68))
	for _, own := range g.own4() {
		c.add(accept, append([]match{isIPv4}, own...)...)
	}
}

// own4 are the conditions of which what the guest sends by IPv4 meets one.
func (g guest) own4() [][]match {
	if g.free() {
		return [][]match{nil}
	}
	var out [][]match
	for _, a := range g.addresses(false) {
		out = append(out, []match{sender(a)})
	}
	return out
}

// The messages of ICMPv6 that say who has an address or routes for others.
const (
	routerSolicit   = 133
	routerAdvert    = 134
	neighborSolicit = 135
	neighborAdvert  = 136
	redirect        = 137
	listenerReport2 = 143
)

// The headers of IPv6 that others follow, by which a message could begin in the
// second fragment, where it is not seen.
var extensions = []byte{0, 43, 44, 51, 60}

// ipv6 lets packets of IPv6 through. Later fragments are harmless without the first
// one, which has the beginning of the message. The kernel may compare their data
// with ports and types, so that they are accepted before.
func (g guest) ipv6(c *chain) {
	for _, h := range extensions {
		c.add(drop, isIPv6, fragmentOf(h))
	}
	for _, own := range g.own6() {
		c.add(accept, append([]match{isIPv6, isLaterFragment6}, own...)...)
	}
	c.add(drop, isIPv6, fromPort("udp", 547))
	c.add(drop, isIPv6, toPort("udp", 546))
	c.add(drop, isIPv6, icmp6(routerAdvert))
	c.add(drop, isIPv6, icmp6(redirect))
	c.add(call(g.Link+"-ns"), isIPv6, icmp6(neighborSolicit))
	c.add(call(g.Link+"-na"), isIPv6, icmp6(neighborAdvert))
	c.add(call(g.Link+"-rs"), isIPv6, icmp6(routerSolicit))
	c.add(accept, isIPv6, icmp6(listenerReport2), sender(unspecified6))
	for _, protocol := range []match{carriesNot("ipv6-icmp"), carries("ipv6-icmp")} {
		for _, own := range g.own6() {
			c.add(accept, append([]match{isIPv6, protocol}, own...)...)
		}
	}
}

// own6 are the conditions of which what the guest sends by IPv6 meets one.
func (g guest) own6() [][]match {
	if g.free() {
		return [][]match{nil}
	}
	var out [][]match
	for _, a := range g.addresses(true) {
		out = append(out, []match{sender(a)})
	}
	if g.Uplink != "" {
		return append(out, []match{endsWith(g.InterfaceID())})
	}
	// No host but the gateway is on the link with it, so the guest may make one up.
	return append(out, []match{fromLinkLocal})
}

// target are the conditions of which a message about an address of the guest's
// meets one.
func (g guest) target() []match {
	const at = 8
	var out []match
	for _, a := range g.addresses(true) {
		out = append(out, part(at, a.AsSlice()))
	}
	if g.Uplink != "" {
		return append(out, part(at+8, g.InterfaceID().AsSlice()[8:]))
	}
	return append(out, partLinkLocal(at))
}

// The lengths of the messages, and of the option that follows.
const (
	solicitLength  = 24
	routersLength  = 8
	option         = 8
	optionSource   = 1
	optionTarget   = 2
	optionNonce    = 14
	lengthOfOption = 1
)

// linkAddress is the option with the guest's MAC.
func (g guest) linkAddress(kind byte) []byte {
	return append([]byte{kind, lengthOfOption}, bytesOf(g.MAC)...)
}

// solicits returns neighbour solicitations that ask for any address and name no other
// MAC than the guest's.
func (g guest) solicits() chain {
	c := chain{Name: g.Link + "-ns"}
	c.plain(solicitLength)
	c.add(send(g.Link+"-dad"), isIPv6, sender(unspecified6))
	c.add(drop, isIPv6, length6(solicitLength+option), partNot(solicitLength, g.linkAddress(optionSource)))
	return c
}

// probes lets the guest look for duplicates of its own addresses.
func (g guest) probes() chain {
	c := chain{Name: g.Link + "-dad"}
	c.add(drop, isIPv6, length6(solicitLength+option), partNot(solicitLength, []byte{optionNonce, lengthOfOption}))
	if g.free() {
		c.add(accept)
		return c
	}
	for _, t := range g.target() {
		c.add(accept, t)
	}
	c.add(drop)
	return c
}

// advertises returns announcements of the guest's own addresses.
func (g guest) advertises() chain {
	c := chain{Name: g.Link + "-na"}
	c.plain(solicitLength)
	c.add(drop, isIPv6, length6(solicitLength+option), partNot(solicitLength, g.linkAddress(optionTarget)))
	if g.free() {
		return c
	}
	for _, t := range g.target() {
		c.add(back, t)
	}
	c.add(drop)
	return c
}

// seeksRouters returns router solicitations that name no other MAC than the
// guest's.
func (g guest) seeksRouters() chain {
	c := chain{Name: g.Link + "-rs"}
	c.plain(routersLength)
	c.add(drop, isIPv6, length6(routersLength+option), partNot(routersLength, g.linkAddress(optionSource)))
	c.add(accept, isIPv6, length6(routersLength), sender(unspecified6))
	return c
}

// plain drops messages that have other headers before them, as fragments have, or
// another length than with one option or none.
func (c *chain) plain(length uint16) {
	c.add(drop, isIPv6, follows6Not("ipv6-icmp"))
	c.add(drop, isIPv6, length6Not(length), length6Not(length+option))
}

// arp lets through what announces or asks for addresses of IPv4, if it announces those of
// the guest.
func (g guest) arp(c *chain) {
	own := []match{isARP, arpOfEthernet, arpSender(g.MAC)}
	if g.free() {
		c.add(accept, own...)
	}
	for _, a := range g.addresses(false) {
		c.add(accept, append(own[:3:3], arpFrom(a))...)
		c.add(accept, append(own[:3:3], arpFrom(unspecified4), arpFor(a))...)
	}
}
