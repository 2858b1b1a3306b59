package domain

import (
	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/vmi"
)

// display adds a graphics card, and its screen as a VNC server on a socket.
func display(b *build) error {
	if !isOn(b.spec.Devices.AutoattachGraphicsDevice, true) {
		return nil
	}
	b.domain.Devices.Graphics = []libvirtxml.DomainGraphic{{VNC: &libvirtxml.DomainGraphicVNC{
		Listeners: []libvirtxml.DomainGraphicListener{{
			Socket: &libvirtxml.DomainGraphicListenerSocket{Socket: VNCSocket(b.host.PrivateDir)},
		}},
	}}}
	m := libvirtxml.DomainVideoModel{Type: b.card(), Heads: 1}
	switch m.Type {
	case "vga":
		m.VRam = 16384
	case "ramfb":
		m.Heads = 0
	}
	b.domain.Devices.Videos = []libvirtxml.DomainVideo{{Model: m}}
	return nil
}

// card is the graphics card: that of the spec, or one that every guest and the
// firmware of the architecture have a driver for.
func (b *build) card() string {
	switch v := b.spec.Devices.Video; {
	case v != nil && v.Type != "":
		return v.Type
	case b.host.Arch != archX86:
		return "virtio"
	case efi(b.spec.Firmware):
		return "bochs"
	default:
		return "vga"
	}
}

// efi says that the guest starts with UEFI.
func efi(f *vmi.Firmware) bool {
	return f != nil && f.Bootloader != nil && f.Bootloader.EFI != nil
}
