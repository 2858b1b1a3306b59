package domain

import "libvirt.org/go/libvirtxml"

// panics adds the devices by which the guest's kernel reports that it crashed. The
// domain ends then, whatever the guest would do by itself, so a guest has them only
// if its spec does.
func panics(b *build) error {
	for _, p := range b.spec.Devices.PanicDevices {
		model := ""
		if p.Model != nil {
			model = string(*p.Model)
		}
		b.domain.Devices.Panics = append(b.domain.Devices.Panics, libvirtxml.DomainPanic{Model: model})
	}
	return nil
}
