package domain

import "libvirt.org/go/libvirtxml"

// controllers adds the buses that other devices are on. libvirt adds the PCI ports
// that they need.
func controllers(b *build) error {
	usb := "none"
	if needsUSB(b.spec) {
		usb = "qemu-xhci"
	}
	b.domain.Devices.Controllers = []libvirtxml.DomainController{
		{Type: "usb", Index: new(uint(0)), Model: usb},
		{Type: "scsi", Index: new(uint(0)), Model: nonTransitional},
		{Type: "virtio-serial", Index: new(uint(0)), Model: nonTransitional},
	}
	return nil
}
