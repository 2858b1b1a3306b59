package network

import "net/netip"

// Offer6 is what router advertisements and DHCPv6 offer one guest interface: its
// address, its gateway, and how names are looked up.
type Offer6 struct {
	// Tap is the tap device that takes the guest's questions and the answers. It is a
	// port of the guest's bridge, belongs to the launcher's user, and carries nothing
	// else: see [Filter].
	Tap string `json:"tap"`
	// MAC is the only client that is answered.
	MAC string `json:"mac"`
	// Address is the guest's address with the length of its network.
	Address netip.Prefix `json:"address"`
	// Router is the link-local address of the guest's default gateway, and RouterMAC
	// its MAC address: the pod behind address translation, and otherwise the router of
	// the pod.
	Router    netip.Addr `json:"router"`
	RouterMAC string     `json:"routerMAC"`
	// MTU of the network, in bytes. 0: not offered.
	MTU int `json:"mtu,omitempty"`
	// Subdomain is as in [Offer].
	Subdomain string `json:"subdomain,omitempty"`
}

// LinkLocal is the link-local address of IPv6 that a MAC address makes (RFC 4291,
// appendix A). It is not valid if the MAC address is none.
func LinkLocal(mac string) netip.Addr {
	id := Filter{MAC: mac}.InterfaceID()
	if !id.IsValid() {
		return id
	}
	a := id.As16()
	a[0], a[1] = 0xfe, 0x80
	return netip.AddrFrom16(a)
}

// offer6 offers the guest its address g behind address translation, and returns the
// tap device that the offer is made by. The gateway has the link-local address that
// its MAC makes, whatever the namespace's default is.
func (i Interface) offer6(g Guest, mac string, mtu int) (*Offer6, LinkConfig) {
	tap := LinkConfig{
		Name: i.Names.Router, Kind: Tap, MAC: i.LinkMAC(i.Names.Router), MTU: mtu, Master: i.Names.Bridge, Owner: i.Owner,
		// The answers come from the MAC address of the gateway, which is not behind this port.
		NoLearning: true, CheckOffloads: true, Sysctls: noEnd(i.Names.Router),
	}
	return &Offer6{
		Tap: tap.Name, MAC: mac, Address: netip.PrefixFrom(g.Address, g.Network.Bits()),
		Router: LinkLocal(gatewayMAC), RouterMAC: gatewayMAC, MTU: mtu, Subdomain: i.Instance.Spec.Subdomain,
	}, tap
}
