package domain

import "libvirt.org/go/libvirtxml"

// channels is the channel of the guest agent.
func channels(h Host) []libvirtxml.DomainChannel {
	return []libvirtxml.DomainChannel{{
		Source: &libvirtxml.DomainChardevSource{UNIX: &libvirtxml.DomainChardevSourceUNIX{Mode: "bind", Path: AgentSocket(h.PrivateDir)}},
		Target: &libvirtxml.DomainChannelTarget{VirtIO: &libvirtxml.DomainChannelTargetVirtIO{Name: "org.qemu.guest_agent.0"}},
	}}
}
