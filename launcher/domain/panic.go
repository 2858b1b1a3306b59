package domain

import "libvirt.org/go/libvirtxml"

// panics adds the devices by which the guest's kernel reports that it crashed. The
// domain ends then, whatever the guest would do by itself, so a guest has them only
// if its spec does.
func panics(b *Draft) error {
	for _, p := range b.Spec.Devices.PanicDevices {
		model := ""
		if p.Model != nil {
			model = string(*p.Model)
		}
		b.Domain.Devices.Panics = append(b.Domain.Devices.Panics, libvirtxml.DomainPanic{Model: model})
	}
	return nil
}
