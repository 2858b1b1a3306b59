package domain

import "libvirt.org/go/libvirtxml"

// graphics is the machine's screen as a VNC server on a socket.
func graphics(h Host) []libvirtxml.DomainGraphic {
	return []libvirtxml.DomainGraphic{{VNC: &libvirtxml.DomainGraphicVNC{
		Listeners: []libvirtxml.DomainGraphicListener{{
			Socket: &libvirtxml.DomainGraphicListenerSocket{Socket: VNCSocket(h.PrivateDir)},
		}},
	}}}
}

// videos is the graphics card that every guest has a driver for.
func videos() []libvirtxml.DomainVideo {
	return []libvirtxml.DomainVideo{{Model: libvirtxml.DomainVideoModel{Type: "vga", Heads: 1, VRam: 16384}}}
}
