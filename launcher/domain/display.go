package domain

import (
	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/vmi"
)

// display adds a graphics card, and its screen as a VNC server on a socket.
func display(b *Draft) error {
	if !isOn(b.Spec.Devices.AutoattachGraphicsDevice, true) {
		return nil
	}
	b.Domain.Devices.Graphics = []libvirtxml.DomainGraphic{{VNC: &libvirtxml.DomainGraphicVNC{
		Listeners: []libvirtxml.DomainGraphicListener{{
			Socket: &libvirtxml.DomainGraphicListenerSocket{Socket: VNCSocket(b.Host.PrivateDir)},
		}},
	}}}
	m := libvirtxml.DomainVideoModel{Type: b.card(), Heads: 1}
	switch m.Type {
	case "vga":
		m.VRam = 16384
	case "ramfb":
		m.Heads = 0
	}
	b.Domain.Devices.Videos = []libvirtxml.DomainVideo{{Model: m}}
	return nil
}

// card is the graphics card: that of the spec, or one that every guest and the
// firmware of the architecture have a driver for.
func (b *Draft) card() string {
	switch v := b.Spec.Devices.Video; {
	case v != nil && v.Type != "":
		return v.Type
	case b.Host.Arch != archX86:
		return "virtio"
	case efi(b.Spec.Firmware):
		return "bochs"
	default:
		return "vga"
	}
}

// efi says that the guest starts with UEFI.
func efi(f *vmi.Firmware) bool {
	return f != nil && f.Bootloader != nil && f.Bootloader.EFI != nil
}
