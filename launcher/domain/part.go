package domain

import "libvirt.org/go/libvirtxml"

// Part is a kind of device of a domain. All that the package knows of a kind is in its
// part: how it is built, and where it is on a bus.
type Part struct {
	// Name is the name of the kind, for people.
	Name string
	// Build adds the devices of the kind, if the instance has some, or returns why it
	// cannot. A fault of the spec wraps [vmi.ErrInvalid]. Required.
	Build func(*Draft) error
	// Devices are the devices of the kind in a domain with all its parts. Nil: none is
	// on the PCI bus, and none is a virtio device.
	Devices func(*libvirtxml.DomainDeviceList) []Device
	// NeedsUSB says that a device of the kind is on the USB. Nil: none ever is.
	NeedsUSB func(*Draft) bool
}

// Device is a device of a domain as its buses see it.
type Device struct {
	// Name is what faults call the device.
	Name string
	// Address is where the device's address on the PCI bus is, or is put. Nil: the
	// device is not on the PCI bus.
	Address **libvirtxml.DomainAddress
	// At is the device's place if it has no address: see [OnRoot] and [Spare]. A guest
	// knows the device by it, so it never changes. Nil: there is no room.
	At *PCIAddress
	// Virtio is what the device is as a virtio device. Nil: it is none.
	Virtio *Virtio
}

// Virtio is what can be asked of a virtio device.
type Virtio struct {
	// Model is the model, of which there may be one with the legacy interface. Nil:
	// there is none.
	Model *string
	// Share makes the device use only memory that the guest shares with its node. Nil:
	// it does already.
	Share func()
}

// devices are those of all parts.
func (b *Draft) devices() []Device {
	var all []Device
	for _, p := range b.Host.Parts {
		if p.Devices != nil {
			all = append(all, p.Devices(b.Domain.Devices)...)
		}
	}
	return all
}

// onPCI are those that are on the PCI bus.
func (b *Draft) onPCI() []Device {
	var all []Device
	for _, d := range b.devices() {
		if d.Address != nil {
			all = append(all, d)
		}
	}
	return all
}

// virtio are the virtio devices.
func (b *Draft) virtio() []Virtio {
	var all []Virtio
	for _, d := range b.devices() {
		if d.Virtio != nil {
			all = append(all, *d.Virtio)
		}
	}
	return all
}

// devicesOf are the devices that each makes of one of the elements.
func devicesOf[T any](all []T, each func(n int, of *T) Device) []Device {
	var out []Device
	for n := range all {
		out = append(out, each(n, &all[n]))
	}
	return out
}
