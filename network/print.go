package network

import (
	"fmt"
	"net/netip"
	"strings"
)

// String shows the config as text for people, one line for each fact.
func (c Config) String() string {
	var b strings.Builder
	for _, l := range c.Links {
		l.write(&b)
	}
	for _, s := range c.Sysctls {
		fmt.Fprintf(&b, "set %s\n", s)
	}
	for _, n := range c.NAT {
		n.write(&b)
	}
	for _, f := range c.Filters {
		f.write(&b)
	}
	for _, a := range c.Attachments {
		a.write(&b)
	}
	for _, i := range c.Interfaces {
		fmt.Fprintf(&b, "status %s: mac %s pod link %s addresses %s\n", i.Name, i.MAC, i.PodInterfaceName, list(i.IPs))
	}
	for _, n := range c.Notes {
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	return b.String()
}

func (l LinkConfig) write(b *strings.Builder) {
	fmt.Fprintf(b, "link %s (%s)", l.Name, l.Kind)
	if l.Kind == Uplink {
		fmt.Fprintf(b, " index %d", l.Index)
	}
	if l.Interim != "" {
		fmt.Fprintf(b, " made as %s", l.Interim)
	}
	if l.MAC != "" {
		fmt.Fprintf(b, " mac %s", l.MAC)
	}
	if l.MTU != 0 {
		fmt.Fprintf(b, " mtu %d", l.MTU)
	}
	if l.Down {
		b.WriteString(" down")
	}
	if l.Master != "" {
		fmt.Fprintf(b, " port of %s", l.Master)
	}
	if l.NoLearning {
		b.WriteString(" not learning")
	}
	if l.ForwardGroups {
		b.WriteString(" forwarding groups")
	}
	if l.CheckOffloads {
		b.WriteString(" checking offloads")
	}
	if l.NoFlooding {
		b.WriteString(" not flooded")
	}
	if l.FramesTo != "" {
		fmt.Fprintf(b, " frames for its address go to %s", l.FramesTo)
	}
	if l.Kind == Tap {
		fmt.Fprintf(b, " owner %d:%d", l.Owner.UID, l.Owner.GID)
	}
	if l.MultiQueue {
		b.WriteString(" multi-queue")
	}
	b.WriteByte('\n')
	for _, a := range l.Addresses {
		fmt.Fprintf(b, "  address %s\n", a)
	}
	for _, r := range l.Remember {
		fmt.Fprintf(b, "  remember route %s\n", r)
	}
	for _, s := range l.Sysctls {
		fmt.Fprintf(b, "  set %s\n", s)
	}
}

// String is the setting as the program sysctl takes it, with slashes.
func (s Sysctl) String() string {
	t := s.Key + " = " + s.Value
	if s.Optional {
		t += " if possible"
	}
	return t
}

func (n NAT) write(b *strings.Builder) {
	for _, g := range n.Guests {
		fmt.Fprintf(b, "nat %s: %s for guest %s, gateway %s in %s", n.Link, list(g.Pod), g.Address, g.Gateway, g.Network)
		if n.Loopback && g.Address.Is4() {
			b.WriteString(", and the loopback")
		}
		b.WriteByte('\n')
	}
	for _, p := range n.Ports {
		if p.Last != 0 {
			fmt.Fprintf(b, "  ports %d-%d/%s\n", p.Number, p.Last, p.Protocol)
			continue
		}
		fmt.Fprintf(b, "  port %d/%s\n", p.Number, p.Protocol)
	}
}

func (f Filter) write(b *strings.Builder) {
	fmt.Fprintf(b, "filter %s: from mac %s", f.Link, f.MAC)
	if len(f.Addresses) == 0 {
		b.WriteString(" any address")
	} else {
		fmt.Fprintf(b, " %s", list(f.Addresses))
	}
	if f.Derived {
		b.WriteString(" and those of its mac")
	}
	if f.Uplink != "" {
		fmt.Fprintf(b, " to %s", f.Uplink)
	}
	if f.Router != "" {
		fmt.Fprintf(b, ", answered by %s", f.Router)
	}
	if f.Own.IsValid() {
		fmt.Fprintf(b, ", asked by %s with mac %s on %s", f.Own, f.OwnMAC, f.Bridge)
	}
	b.WriteByte('\n')
}

func (a Attachment) write(b *strings.Builder) {
	fmt.Fprintf(b, "attach %s: tap %s mac %s mtu %d", a.Name, a.Tap, a.MAC, a.MTU)
	if a.Queues > 0 {
		fmt.Fprintf(b, " queues %d", a.Queues)
	}
	b.WriteByte('\n')
	if a.Way != nil {
		a.Way.write(b)
	}
	if o := a.DHCP6; o != nil {
		fmt.Fprintf(b, "  DHCPv6 on %s for %s: address %s router %s mtu %d\n", o.Tap, o.MAC, o.Address, o.Router, o.MTU)
	}
	o := a.DHCP
	if o == nil {
		return
	}
	fmt.Fprintf(b, "  DHCP on %s for %s: address %s from %s", o.Link, o.MAC, o.Address, o.Server)
	if o.Router.IsValid() {
		fmt.Fprintf(b, " router %s", o.Router)
	}
	fmt.Fprintf(b, " mtu %d hostname %s", o.MTU, o.Hostname)
	if o.Subdomain != "" {
		fmt.Fprintf(b, " subdomain %s", o.Subdomain)
	}
	b.WriteByte('\n')
	if o.Options != nil {
		fmt.Fprintf(b, "  DHCP options boot file %q TFTP server %q NTP servers %s private %v\n", o.Options.BootFileName,
			o.Options.TFTPServerName, list(o.Options.NTPServers), o.Options.PrivateOptions)
	}
	for _, r := range o.Routes {
		fmt.Fprintf(b, "  DHCP route %s\n", r)
	}
}

// list is a list of addresses, or a dash.
func list[T string | netip.Addr](all []T) string {
	if len(all) == 0 {
		return "-"
	}
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(all), " ", ", "), "[]")
}
