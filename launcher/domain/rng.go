package domain

import "libvirt.org/go/libvirtxml"

// rngSlot is the slot of the random number generator.
const rngSlot = 0x14

// rngPart is the random number generator.
//
// +podvisor:entry
var rngPart = Part{
	Name: "rng", Build: rng,
	Devices: func(l *libvirtxml.DomainDeviceList) []Device {
		return devicesOf(l.RNGs, func(n int, r *libvirtxml.DomainRNG) Device {
			return Device{
				Name: "the random number generator", Address: &r.Address, At: OnRoot(rngSlot, n),
				Virtio: &Virtio{Model: &r.Model, Share: func() { r.Driver = &libvirtxml.DomainRNGDriver{IOMMU: switchedOn} }},
			}
		})
	},
}

// rng adds the guest's source of random numbers, if the spec has one.
func rng(b *Draft) error {
	if b.Spec.Devices.Rng == nil {
		return nil
	}
	b.Domain.Devices.RNGs = []libvirtxml.DomainRNG{{
		Model:   nonTransitional,
		Backend: &libvirtxml.DomainRNGBackend{Random: &libvirtxml.DomainRNGBackendRandom{Device: "/dev/urandom"}},
	}}
	return nil
}
