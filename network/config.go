package network

import (
	"net/netip"

	"github.com/podvisor/podvisor/vmi"
)

// Config is a pod's network namespace as a VMI needs it, and what launcher and
// status need of it. Links and settings that are not named in it stay as they
// are.
type Config struct {
	// Links are the links of all interfaces, in the order in which they are made.
	Links []LinkConfig
	// Sysctls are the settings of the namespace as a whole.
	Sysctls []Sysctl
	// NAT is the address translation, at most one for each interface. Nil: none.
	NAT []NAT
	// Filters are what the guest may send, at most one for each interface. An
	// interface without one may send anything.
	Filters []Filter
	// Attachments are what the launcher needs to attach the guest, one for each
	// interface in the order of the spec.
	Attachments []Attachment
	// Interfaces are the VMI's interfaces for its status, in the order of the
	// spec.
	Interfaces []vmi.InterfaceStatus
	// Notes say what guests go without, for people. Those that were there when the
	// network was bound first are not there later.
	Notes []string
}

// Kind is what a link in a [Config] is.
type Kind string

// The kinds of links.
const (
	// Bridge joins its ports with each other and with the pod.
	Bridge Kind = "bridge"
	// Tap is the pod's end of a guest's interface. It outlives the process that
	// uses it.
	Tap Kind = "tun"
	// Uplink is a link that a network plugin gave the pod: it exists and is found
	// by its index.
	Uplink Kind = "uplink"
)

// LinkConfig is a link as it must be.
type LinkConfig struct {
	// Interface is the name of the interface that the link is for; [Plan] sets it.
	Interface string
	Name      string
	// Interim is the link's name as long as an Uplink of the config has Name and
	// has yet to be renamed. Empty: no Uplink has that name.
	Interim string
	Kind    Kind
	// Index says which link is meant by an Uplink, whatever its name is now.
	Index int
	// MAC is the link's address. Empty: any.
	MAC string
	// MTU in bytes. 0: any.
	MTU int
	// Down says that the link is not set up: it only holds its addresses.
	Down bool
	// Master is the bridge that the link is a port of. Empty: none.
	Master string
	// NoLearning keeps the bridge from learning which addresses are behind this
	// port.
	NoLearning bool
	// NoFlooding keeps the bridge from sending frames to this port whose MAC address it
	// has not learnt. Groups and broadcasts still come.
	NoFlooding bool
	// ForwardGroups has a Bridge forward frames to the groups that bridges do not forward
	// (01:80:c2:00:00:03 to 0f), for the rules to drop: otherwise the kernel hands some of
	// them to the pod as what came by the port, past all rules for frames.
	ForwardGroups bool
	// CheckOffloads has a Tap drop frames whose checksum is left to the hardware, as virtio
	// lets guests do, at another place than that of the TCP or UDP that they carry. The
	// kernel would write there after the rules for frames have seen them.
	CheckOffloads bool
	// FramesTo is the port of the same bridge that gets the frames for MAC, although it is
	// this link's own address. Empty: the pod gets them.
	FramesTo string
	// Owner is the user and group that can open a Tap.
	Owner Owner
	// MultiQueue says that a Tap is opened once for each of several queues.
	MultiQueue bool
	// Addresses are all addresses of the link; but an Uplink that is no port of
	// a bridge keeps what it has.
	Addresses []netip.Prefix
	// Remember are routes that are kept in the table [RememberTable] on this
	// link, where they route nothing.
	Remember []Route
	// Sysctls are the settings of the link. They are made before it is set up.
	Sysctls []Sysctl
}

// Sysctl is a setting of the kernel: the path of its file in /proc/sys, and
// what is to be read there.
type Sysctl struct {
	Key, Value string
	// Optional says that an interface works without: it is no error if the
	// setting cannot be made.
	Optional bool
}

// NAT is the address translation of one interface: the pod's addresses stand for
// the guest's.
type NAT struct {
	// Link is the link that leads to the guest.
	Link string
	// Guests are the guest's addresses, at most one of each family.
	Guests []Guest
	// Ports are the ports that are the guest's, in order and each one once.
	// Empty: everything that is sent to the pod is the guest's.
	Ports []Port
	// Loopback says that connections within the pod to 127.0.0.1 are the guest's
	// too. At most one interface of a pod has it.
	Loopback bool
}

// Guest is one address of a guest behind address translation.
type Guest struct {
	Address netip.Addr
	// Gateway is the pod's address on the guest's link.
	Gateway netip.Addr
	// Network holds both. They alone are in it.
	Network netip.Prefix
	// Pod are the addresses that stand for the guest's.
	Pod []netip.Addr
}

// Port is a port of a guest, or a range of ports.
type Port struct {
	// Protocol is TCP or UDP.
	Protocol string
	Number   uint16
	// Last is the last port of the range that begins with Number. 0: Number alone.
	Last uint16
}
