package network

import (
	"encoding/hex"
	"net/netip"
	"strings"
)

// Filter is what the guest may send by one interface: a pod that its plugin gave a
// MAC address and addresses can send from those alone, and so can the guest in its
// place. Everything else is dropped where the guest's frames enter the pod:
// frames of other protocols than IPv4, IPv6 and ARP, which tagged frames are too,
// frames to the groups that bridges do not forward, what comes from or announces other
// addresses, what only routers send, and the answers of DHCP servers.
type Filter struct {
	// Link is the tap device of the interface.
	Link string
	// MAC is the guest's.
	MAC string
	// Addresses are the guest's addresses, IPv4 first. With an Uplink the link-local
	// address of IPv6 that the MAC makes is its own too, otherwise every link-local one,
	// since only the gateway is on the link with it.
	// None: the network gives no addresses, and the guest may have any.
	Addresses []netip.Addr
	// Derived says that the guest may also have every address of IPv6 whose last 64 bits
	// are made of the MAC, as routers of its network give them. With an Uplink and without
	// it, the guest gets by IP nothing but what is for its addresses, groups and everyone.
	Derived bool
	// Uplink is the link by which the guest's frames leave the pod unchanged. The
	// pod itself then gets nothing of what comes by Link or Uplink but the guest's
	// requests for addresses. Empty: the pod routes what the guest sends.
	Uplink string
	// Router is the tap device by which the launcher answers the guest as its router:
	// from RouterMAC, with router advertisements and DHCPv6 only, and the pod gets
	// nothing of it. With an Uplink it may send to the guest's MAC alone. Empty: there is
	// none.
	Router, RouterMAC string
	// Own is the pod's address on the guest's bridge, and OwnMAC the MAC address of Bridge.
	// Beside an Uplink, the pod connects to the guest from there: what the guest answers to
	// Own gets to the pod, whatever its MAC, and the pod sends nothing by the Uplink.
	// Invalid: the pod does not connect to the guest.
	Own            netip.Addr
	OwnMAC, Bridge string
}

// InterfaceID is the second half of the addresses of IPv6 that are made of the MAC
// (RFC 4291, appendix A), in an address whose first half is zero. It is not valid
// if the MAC is none.
func (f Filter) InterfaceID() netip.Addr {
	m, err := hex.DecodeString(strings.ReplaceAll(f.MAC, ":", ""))
	if err != nil || len(m) != 6 {
		return netip.Addr{}
	}
	return netip.AddrFrom16([16]byte{8: m[0] ^ 2, m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]})
}

// Filter is the filter for the interface if its guest has this MAC and these
// addresses.
func (i Interface) Filter(mac string, addresses []netip.Addr) Filter {
	return Filter{Link: i.Names.Tap, MAC: mac, Addresses: addresses}
}
