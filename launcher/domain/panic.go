package domain

import (
	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/vmi"
)

// panicSlot is the slot of the panic device that is on the PCI bus.
const panicSlot = 0x17

// panicPart are the devices that report a crash.
//
// +podvisor:entry
var panicPart = Part{
	Name: "panic", Build: panics,
	Devices: func(l *libvirtxml.DomainDeviceList) []Device {
		return devicesOf(l.Panics, func(n int, p *libvirtxml.DomainPanic) Device {
			d := Device{Name: "the panic device", At: OnRoot(panicSlot, n)}
			if p.Model == string(vmi.PanicDevicePVPanic) {
				d.Address = &p.Address
			}
			return d
		})
	},
}

// panics adds the devices by which the guest's kernel reports that it crashed. The
// domain ends then, whatever the guest would do by itself, so a guest has them only
// if its spec does.
func panics(b *Draft) error {
	for _, p := range b.Spec.Devices.PanicDevices {
		model := ""
		switch {
		case p.Model != nil:
			model = string(*p.Model)
		case b.Host.Arch == archARM:
			model = string(vmi.PanicDevicePVPanic)
		}
		b.Domain.Devices.Panics = append(b.Domain.Devices.Panics, libvirtxml.DomainPanic{Model: model})
	}
	return nil
}
