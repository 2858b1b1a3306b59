package domain

import "libvirt.org/go/libvirtxml"

// agentChannel adds the channel of the guest agent.
func agentChannel(b *build) error {
	b.domain.Devices.Channels = append(b.domain.Devices.Channels, libvirtxml.DomainChannel{
		Source: &libvirtxml.DomainChardevSource{UNIX: &libvirtxml.DomainChardevSourceUNIX{Mode: "bind", Path: AgentSocket(b.host.PrivateDir)}},
		Target: &libvirtxml.DomainChannelTarget{VirtIO: &libvirtxml.DomainChannelTargetVirtIO{Name: "org.qemu.guest_agent.0"}},
	})
	return nil
}
