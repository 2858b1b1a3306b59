package network

import "net/netip"

// Attachment is one interface of a VMI as it is bound in the pod: what the
// launcher must know to attach the guest to it. The handler sends it to the
// launcher as JSON.
type Attachment struct {
	// Name is the interface's name in the spec.
	Name string `json:"name"`
	// Tap is the tap device in the pod's network namespace. It belongs to the
	// launcher's user and exists already.
	Tap string `json:"tap"`
	// Backend is what carries the frames of the guest. Empty: the tap device. It is
	// not sent: only a program that embeds a launcher chooses another.
	Backend Backend `json:"-"`
	// MAC is the address of the guest's interface.
	MAC string `json:"mac"`
	// MTU of the guest's interface, in bytes. 0: the guest's default.
	MTU int `json:"mtu,omitempty"`
	// DHCP is what the launcher offers the guest. Nil: nothing is served.
	DHCP *Offer `json:"dhcp,omitempty"`
}

// Backend is what carries the frames of a guest.
type Backend string

// BackendUser is QEMU's user-mode network. It needs no privilege and no device: the
// guest's connections become those of QEMU, and nothing reaches the guest from
// outside. libvirt 9.0 of Debian refuses the XML of passt, which would be faster.
const BackendUser Backend = "user"

// Offer is what DHCPv4 offers one guest interface.
type Offer struct {
	// Link is the link in the pod's namespace that the guest's requests come in
	// by.
	Link string `json:"link"`
	// MAC is the only client that is answered.
	MAC string `json:"mac"`
	// Address is the guest's address with the length of its network.
	Address netip.Prefix `json:"address"`
	// Server is the address that the offer comes from.
	Server netip.Addr `json:"server"`
	// Router is the guest's default gateway. It may be outside the guest's
	// network; Routes says then how it is reached. Invalid: none.
	Router netip.Addr `json:"router,omitzero"`
	// Routes are all routes of the guest beside the one to its own network, the
	// default one included. Empty: the one through Router is all there is.
	// (RFC 3442: a client that gets routes ignores the router.)
	Routes []Route `json:"routes,omitempty"`
	// MTU of the network, in bytes. 0: not offered.
	MTU int `json:"mtu,omitempty"`
	// Hostname of the guest.
	Hostname string `json:"hostname,omitempty"`
	// Subdomain is put before the cluster's domain of the pod's namespace to
	// make the guest's own domain. Empty: the guest's domain is that one.
	Subdomain string `json:"subdomain,omitempty"`
}

// Route is a route of a pod or a guest.
type Route struct {
	Destination netip.Prefix `json:"destination"`
	// Gateway is the next hop. Invalid: the destination is on the link.
	Gateway netip.Addr `json:"gateway,omitzero"`
}
