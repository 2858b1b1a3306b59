package network

import (
	"net/netip"

	"github.com/podvisor/podvisor/vmi"
)

// Attachment is one interface of a VMI as it is bound in the pod: what the
// launcher must know to attach the guest to it. The handler sends it to the
// launcher as JSON.
type Attachment struct {
	// Name is the interface's name in the spec.
	Name string `json:"name"`
	// Tap is the tap device in the pod's network namespace. It belongs to the
	// launcher's user and exists already. Empty: the guest gets a device of the node,
	// which the launcher finds in the environment of its pod.
	Tap string `json:"tap"`
	// Backend is what carries the frames of the guest. Empty: the tap device. It is
	// not sent: only a program that embeds a launcher chooses another.
	Backend Backend `json:"-"`
	// Server is where QEMU connects to if the backend is TCP.
	Server netip.AddrPort `json:"-"`
	// MAC is the address of the guest's interface. Empty: that of the device of the node.
	MAC string `json:"mac"`
	// MTU of the guest's interface, in bytes. 0: the guest's default.
	MTU int `json:"mtu,omitempty"`
	// Queues is how many queues the guest's interface has. 0: one.
	Queues int `json:"queues,omitempty"`
	// DHCP is what the launcher offers the guest. Nil: nothing is served.
	DHCP *Offer `json:"dhcp,omitempty"`
	// DHCP6 is what the launcher offers the guest by IPv6. Nil: nothing is served.
	DHCP6 *Offer6 `json:"dhcp6,omitempty"`
	// Way is how the pod reaches the ports of the guest that users have forwarded to them.
	// Nil: it does not by this interface.
	Way *Way `json:"way,omitempty"`
}

// Backend is what carries the frames of a guest.
type Backend string

// The backends besides a tap device. Neither needs a privilege or a device.
const (
	// BackendUser is QEMU's user-mode network: the guest's connections become those
	// of QEMU, and nothing reaches the guest from outside.
	BackendUser Backend = "user"
	// BackendTCP is a connection of QEMU to a server, on which each frame follows its
	// length as a number of four bytes, the most significant first. The program passt
	// serves that. QEMU connects once, when it starts.
	BackendTCP Backend = "tcp"
)

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
	// Routes are all routes of the guest besides the one to its own network, the
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
	// Options are those of the spec. Nil: none.
	Options *vmi.DHCPOptions `json:"options,omitempty"`
}

// Route is a route of a pod or a guest.
type Route struct {
	Destination netip.Prefix `json:"destination"`
	// Gateway is the next hop. Invalid: the destination is on the link.
	Gateway netip.Addr `json:"gateway,omitzero"`
}
