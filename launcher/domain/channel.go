package domain

import (
	"path"

	"libvirt.org/go/libvirtxml"
)

// agentPart is the channel of the guest agent.
//
// +podvisor:entry
var agentPart = Part{Name: "guest agent", Build: agentChannel}

// agentChannel adds the channel of the guest agent.
func agentChannel(b *Draft) error {
	b.Domain.Devices.Channels = append(b.Domain.Devices.Channels, libvirtxml.DomainChannel{
		Source: &libvirtxml.DomainChardevSource{UNIX: &libvirtxml.DomainChardevSourceUNIX{Mode: "bind", Path: path.Join(b.Host.PrivateDir, agentSocket)}},
		Target: &libvirtxml.DomainChannelTarget{VirtIO: &libvirtxml.DomainChannelTargetVirtIO{Name: "org.qemu.guest_agent.0"}},
	})
	return nil
}
