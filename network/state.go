package network

import (
	"fmt"
	"net/netip"
	"strings"
)

// Macvlan is the kernel's name of links that get frames for their own MAC address alone.
const Macvlan = "macvlan"

// State is a pod's network namespace as it is.
type State struct {
	// Links are the links of the namespace in the order of their indexes.
	Links []Link
}

// Link is a network link as it is.
type Link struct {
	Index int
	Name  string
	// Kind is the kernel's name of the kind of link: veth, bridge, tun.
	// Empty: a real device or the loopback.
	Kind string
	MAC  string
	MTU  int
	// Up says that the link was set up. It need not have a carrier.
	Up bool
	// Master is the name of the bridge that the link is a port of.
	Master string
	// Learning says that the link is a port of a bridge, which learns from it
	// which addresses are behind it.
	Learning bool
	// Flooding says that the link is a port of a bridge, which sends it the frames for
	// addresses that it has not learnt.
	Flooding bool
	// ForwardsGroups says that the link is a bridge with what [LinkConfig.ForwardGroups] asks for.
	ForwardsGroups bool
	// ChecksOffloads says that the link is a tap device with what [LinkConfig.CheckOffloads] asks for.
	ChecksOffloads bool
	// Router is the link-local address at which the router of IPv6 answers that the link's
	// default route leads to, and RouterMAC its MAC address. Not valid and empty: there is
	// none, or it was not looked for, or RouterSilent says that it did not answer.
	Router       netip.Addr
	RouterMAC    string
	RouterSilent bool
	// Static are the MAC addresses that a bridge keeps as those behind this port. They
	// are read if a link of the namespace is of the kind [Macvlan].
	Static []string
	// Owner is the owner of a tap device. Nil if the link is no tap device that
	// QEMU can open.
	Owner *Owner
	// MultiQueue says that a tap device can only be opened with several queues.
	MultiQueue bool
	// Addresses are the link's addresses, IPv4 first, without the link-local
	// ones of IPv6.
	Addresses []netip.Prefix
	// Routes are the routes of the main table that leave by this link, the best
	// one for a destination first.
	Routes []Route
	// Remembered are the routes in the table [RememberTable].
	Remembered []Route
	// AcceptsRA says that the link takes routes from IPv6 router advertisements.
	AcceptsRA bool
}

// Owner is the user and group that can open a tap device.
type Owner struct{ UID, GID uint32 }

// String shows the namespace as text for people, one line for each fact.
func (s State) String() string {
	var b strings.Builder
	for _, l := range s.Links {
		l.write(&b)
	}
	return b.String()
}

func (l Link) write(b *strings.Builder) {
	fmt.Fprintf(b, "%s", l.Name)
	if l.Kind != "" {
		fmt.Fprintf(b, " (%s)", l.Kind)
	}
	if l.MAC != "" {
		fmt.Fprintf(b, " mac %s", l.MAC)
	}
	fmt.Fprintf(b, " mtu %d", l.MTU)
	if l.Up {
		b.WriteString(" up")
	} else {
		b.WriteString(" down")
	}
	if l.Master != "" {
		fmt.Fprintf(b, " port of %s", l.Master)
		if !l.Learning {
			b.WriteString(" not learning")
		}
		if len(l.Static) > 0 {
			fmt.Fprintf(b, " leads to %s", strings.Join(l.Static, " "))
		}
	}
	if l.ForwardsGroups {
		b.WriteString(" forwarding groups")
	}
	if l.Owner != nil {
		fmt.Fprintf(b, " owner %d:%d", l.Owner.UID, l.Owner.GID)
	}
	if l.MultiQueue {
		b.WriteString(" multi-queue")
	}
	if l.ChecksOffloads {
		b.WriteString(" checking offloads")
	}
	b.WriteByte('\n')
	for _, a := range l.Addresses {
		fmt.Fprintf(b, "  address %s\n", a)
	}
	for _, r := range l.Routes {
		fmt.Fprintf(b, "  route %s\n", r)
	}
	for _, r := range l.Remembered {
		fmt.Fprintf(b, "  remembered route %s\n", r)
	}
}

// String is the route as the program ip shows it.
func (r Route) String() string {
	if !r.Gateway.IsValid() {
		return r.Destination.String()
	}
	return r.Destination.String() + " via " + r.Gateway.String()
}

// Link returns the link with that name, or nil. It must not be changed.
func (s State) Link(name string) *Link {
	for i := range s.Links {
		if s.Links[i].Name == name {
			return &s.Links[i]
		}
	}
	return nil
}
