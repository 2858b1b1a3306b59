package domain

import "libvirt.org/go/libvirtxml"

// display adds a graphics card that every guest has a driver for, and its screen
// as a VNC server on a socket.
func display(b *build) error {
	b.domain.Devices.Graphics = []libvirtxml.DomainGraphic{{VNC: &libvirtxml.DomainGraphicVNC{
		Listeners: []libvirtxml.DomainGraphicListener{{
			Socket: &libvirtxml.DomainGraphicListenerSocket{Socket: VNCSocket(b.host.PrivateDir)},
		}},
	}}}
	b.domain.Devices.Videos = []libvirtxml.DomainVideo{{Model: libvirtxml.DomainVideoModel{Type: "vga", Heads: 1, VRam: 16384}}}
	return nil
}
