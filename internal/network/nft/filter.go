package nft

import (
	"net/netip"
	"slices"

	"github.com/podvisor/podvisor/network"
)

// filters is the table of frames for what the guests may send. Each guest has a
// chain of the name of its link, which drops what it does not accept, and chains
// for the messages of IPv6's neighbour discovery.
func filters(all []network.Filter) table {
	ingress := chain{Name: "prerouting", Kind: "filter", Hook: prerouting, Priority: frames}
	toPod := chain{Name: "input", Kind: "filter", Hook: input, Priority: framesForPods}
	toGuests := chain{Name: "forward", Kind: "filter", Hook: forward, Priority: frames}
	answers, ofPod := answersToPod(), framesOfPod()
	var guests []chain
	for _, f := range all {
		ingress.add(send(f.Link), from(f.Link))
		for _, l := range portsOf(f) {
			toPod.add(drop, from(l), toBridges)
		}
		if f.Own.IsValid() {
			answers.redirect(f)
			ofPod.keepIn(f)
		}
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
		if f.Uplink != "" && !f.Derived && !g.free() {
			toGuests.add(send(f.Link+"-in"), leaves(f.Link))
			guests = append(guests, g.gets())
		}
		if f.Uplink != "" && !g.free() {
			// Its launcher answers, and no policy is for a sender without an address.
			toGuests.add(drop, leaves(f.Uplink), isIPv4, sender(unspecified4))
		}
	}
	hooked := []chain{ingress, toPod}
	if len(toGuests.Rules) > 0 {
		hooked = append(hooked, toGuests)
	}
	if len(answers.Rules) > 0 {
		hooked = append(hooked, answers, ofPod)
	}
	return table{Family: bridge, Chains: append(hooked, guests...)}
}

// portsOf are the links of an interface that are ports of its bridge.
func portsOf(f network.Filter) []string {
	return slices.DeleteFunc([]string{f.Link, f.Router, f.Uplink}, func(l string) bool { return l == "" })
}

// pastBridges drops the packets of a port that come to the pod by the port itself, and not
// by its bridge: no rule for frames has seen them.
func pastBridges(all []network.Filter) chain {
	c := chain{Name: "ports", Kind: "filter", Hook: prerouting, Priority: raw}
	for _, f := range all {
		for _, l := range portsOf(f) {
			c.add(drop, from(l))
		}
	}
	return c
}

// addPod adds what reaches the pod itself, which is not on this network.
func (c *chain) addPod(f network.Filter) {
	c.add(accept, from(f.Link), isARP)
	c.add(accept, from(f.Link), isIPv4, toPort("udp", 67))
	if f.Own.IsValid() {
		c.add(accept, from(f.Link), isIPv4, destination(f.Own))
	}
	c.add(drop, from(f.Link))
	c.add(drop, from(f.Uplink))
}

// router is what the launcher may send a guest as its router.
func router(f network.Filter) chain {
	c := chain{Name: f.Router}
	c.add(drop, notFrom(f.RouterMAC))
	c.add(drop, toBridges)
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
	c.add(drop, toBridges)
	g.tcp(&c)
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
	// The addresses of several receivers.
	groups4 = netip.MustParsePrefix("224.0.0.0/3")
	groups6 = netip.MustParsePrefix("ff00::/8")
)

// tcp lets through most of what guests send, which no rule after it is for.
func (g guest) tcp(c *chain) {
	for _, own := range g.own4() {
		c.add(accept, append([]match{isIPv4, carries("tcp")}, own...)...)
	}
	for _, own := range g.own6() {
		c.add(accept, append([]match{isIPv6, carries("tcp")}, own...)...)
	}
}

// routers are the protocols by which routers exchange routes and stand for each other:
// EIGRP, OSPF, PIM, VRRP.
var routers = []byte{88, 89, 103, 112}

// Where a message of DHCP says what it is, after the header of UDP: by the operation of RFC
// 2131 or the type of RFC 8415. Servers send answers to the port of relays too.
const (
	operation  = 8
	fromClient = 1
)

// ofServers6 are advertise, reply, reconfigure, and what relays send in both directions.
var ofServers6 = []byte{2, 7, 10, 12, 13}

// ipv4 lets packets of IPv4 through.
func (g guest) ipv4(c *chain) {
	const clientMAC = 36 // after the header of UDP and 28 bytes
	c.add(accept, isIPv4, sender(unspecified4), destination(broadcast4), fromPort("udp", 68), toPort("udp", 67), part(clientMAC, bytesOf(g.MAC)))
	c.add(drop, isIPv4, carriesAny(routers...))
	for _, own := range g.own4() {
		c.add(accept, append([]match{isIPv4, isLaterFragment4}, own...)...)
	}
	c.add(drop, isIPv4, isRouting4)
	c.add(drop, isIPv4, isGroupRouting)
	c.add(drop, isIPv4, fromPort("udp", 67))
	c.add(drop, isIPv4, toPort("udp", 68))
	for _, own := range g.own4() {
		c.add(accept, append([]match{isIPv4, toPort("udp", 67), part(operation, []byte{fromClient})}, own...)...)
	}
	c.add(drop, isIPv4, toPort("udp", 67)) // answers towards a relay
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
	listenerReport2 = 143
)

// routing6 are the messages of ICMPv6 that only routers send: questions for groups, router
// advertisements, redirects, renumbering, the certificates of routers (RFC 3971), the
// advertisement and the end of routers of groups (RFC 4286), and RPL (RFC 6550). Those of
// inverse discovery (RFC 3122), which announce addresses too, are for links of another kind.
var routing6 = []byte{130, routerAdvert, 137, 138, 141, 142, 149, 151, 153, 155}

// The headers of IPv6 that others follow: those that the kernel looks behind, and those
// behind which a message would not be seen, which are AH, ESP, those of mobility, HIP and
// Shim6, and two for experiments.
var (
	extensions = []byte{0, 43, 44, 60}
	opaque     = []byte{50, 51, 135, 139, 140, 253, 254}
)

// ipv6 lets packets of IPv6 through. Later fragments are harmless without the first
// one, which has the beginning of the message. The kernel may compare their data
// with ports and types, so that they are accepted before.
func (g guest) ipv6(c *chain) {
	// By the headers before it a message could begin in the second fragment, where it is
	// not seen.
	c.add(drop, isIPv6, fragmentOf(slices.Concat(extensions, opaque)...))
	c.add(drop, isIPv6, carriesAny(slices.Concat(opaque, routers)...))
	for _, own := range g.own6() {
		c.add(accept, append([]match{isIPv6, isLaterFragment6}, own...)...)
	}
	c.add(drop, isIPv6, fromPort("udp", 547))
	c.add(drop, isIPv6, toPort("udp", 546))
	for _, kind := range ofServers6 {
		c.add(drop, isIPv6, toPort("udp", 547), part(operation, []byte{kind}))
	}
	c.add(drop, isIPv6, toPort("udp", 547), fragmentOf(numbers["udp"])) // the type may be in the next
	c.add(drop, isIPv6, isRouting6)
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
	if g.Derived {
		return append(out, []match{endsWith(g.InterfaceID())})
	}
	if g.Uplink != "" {
		return append(out, []match{sender(network.LinkLocal(g.MAC))})
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
	if g.Derived {
		return append(out, part(at+8, g.InterfaceID().AsSlice()[8:]))
	}
	if g.Uplink != "" {
		return append(out, part(at, network.LinkLocal(g.MAC).AsSlice()))
	}
	return append(out, partLinkLocal(at))
}

// gets is what the guest gets of others on its network: what is for its addresses, for
// groups and for everyone. What is for another address passes the policies for its own.
func (g guest) gets() chain {
	c := chain{Name: g.Link + "-in"}
	for _, a := range g.addresses(false) {
		c.add(accept, isIPv4, destination(a))
	}
	for _, a := range append(g.addresses(true), network.LinkLocal(g.MAC)) {
		c.add(accept, isIPv6, destination(a))
	}
	c.add(accept, isARP)
	c.add(accept, isIPv4, into(groups4))
	c.add(accept, isIPv4, toMany)
	c.add(accept, isIPv6, into(groups6))
	c.add(drop)
	return c
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
