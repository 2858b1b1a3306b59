package domain

import "libvirt.org/go/libvirtxml"

// controllers are the buses that other devices are on. libvirt adds the PCI
// ports that they need.
func controllers() []libvirtxml.DomainController {
	return []libvirtxml.DomainController{
		{Type: "usb", Index: new(uint(0)), Model: "none"},
		{Type: "scsi", Index: new(uint(0)), Model: nonTransitional},
		{Type: "virtio-serial", Index: new(uint(0)), Model: nonTransitional},
	}
}
