package domain

import (
	"fmt"
	"slices"
	"strconv"

	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/vmi"
)

// inputSlot is the slot of the input devices on the bus virtio, one in each function.
const inputSlot = 0x18

// inputPart are the input devices.
//
// +podvisor:entry
var inputPart = Part{
	Name: "input", Build: inputs,
	Devices: func(l *libvirtxml.DomainDeviceList) []Device {
		var all []Device
		for i := range l.Inputs {
			if d := &l.Inputs[i]; d.Bus == string(vmi.InputBusVirtio) {
				all = append(all, Device{
					Name: fmt.Sprintf("input %d", i), Address: &d.Address, At: OnRoot(inputSlot, len(all)),
					Virtio: &Virtio{Share: func() { d.Driver = &libvirtxml.DomainInputDriver{IOMMU: switchedOn} }},
				})
			}
		}
		return all
	},
	NeedsUSB: func(b *Draft) bool {
		return slices.ContainsFunc(b.inputs(), func(i vmi.Input) bool { return i.Bus != vmi.InputBusVirtio })
	},
}

// inputs adds the input devices. Guests of arm64 have no PS/2, so that one with a
// screen gets a keyboard and a tablet.
func inputs(b *Draft) error {
	all := b.inputs()
	n, named := 0, map[string]bool{}
	for _, i := range all {
		out := libvirtxml.DomainInput{Type: string(i.Type), Bus: string(vmi.InputBusVirtio)}
		if !named[i.Name] { // libvirt refuses two devices with one alias
			out.Alias, named[i.Name] = deviceAlias("input", i.Name), true
		}
		if i.Bus != vmi.InputBusVirtio {
			n++
			out.Bus, out.Address = string(vmi.InputBusUSB), usbAddress(n)
		}
		b.Domain.Devices.Inputs = append(b.Domain.Devices.Inputs, out)
	}
	if n > usbInputs {
		return fmt.Errorf("%s: the guest has room for %d input devices on the bus usb: give some the bus virtio: %w", devicesPath.Child("inputs"), usbInputs, vmi.ErrInvalid)
	}
	return nil
}

// usbInputs are the ports of the USB controller for input devices, which are its
// first.
const usbInputs = 5

// usbAddress is the address of a port of the USB controller, counted from 1.
func usbAddress(port int) *libvirtxml.DomainAddress {
	return &libvirtxml.DomainAddress{USB: &libvirtxml.DomainAddressUSB{Bus: new(uint(0)), Port: strconv.Itoa(port)}}
}

// inputs are the input devices of the guest: those of the spec, and those that its
// switches and its architecture add.
func (b *Draft) inputs() []vmi.Input {
	all := slices.Clone(b.Spec.Devices.Inputs)
	for i := range all {
		if all[i].Type == "" {
			all[i].Type = vmi.InputTablet
		}
	}
	if len(all) == 0 && isOn(b.Spec.Devices.AutoattachInputDevice, false) {
		all = append(all, vmi.Input{Type: vmi.InputTablet, Bus: vmi.InputBusUSB})
	}
	if b.Host.Arch == archARM && isOn(b.Spec.Devices.AutoattachGraphicsDevice, true) {
		all = append(all, vmi.Input{Type: vmi.InputTablet, Bus: vmi.InputBusUSB}, vmi.Input{Type: "keyboard", Bus: vmi.InputBusUSB})
	}
	return all
}
