package domain

import (
	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/vmi"
)

// videoSlot is the slot of the graphics card.
const videoSlot = 0x01

// displayPart is the graphics card.
//
// +podvisor:entry
var displayPart = Part{
	Name: "display", Build: display,
	Devices: func(l *libvirtxml.DomainDeviceList) []Device {
		return devicesOf(l.Videos, func(n int, v *libvirtxml.DomainVideo) Device {
			d := Device{Name: "the graphics card", At: OnRoot(videoSlot, n)}
			if m := v.Model.Type; m != "ramfb" && m != "none" {
				d.Address = &v.Address
			}
			if isVirtio(v.Model.Type) {
				d.Virtio = &Virtio{Share: func() { v.Driver = &libvirtxml.DomainVideoDriver{IOMMU: switchedOn} }}
			}
			return d
		})
	},
}

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
