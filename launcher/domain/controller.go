package domain

import (
	"fmt"
	"slices"

	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/internal/vmi/pci"
	"github.com/podvisor/podvisor/vmi"
)

const (
	// usbPorts are how many devices the USB controller has room for.
	usbPorts = 15
	// sataPorts are how many disks a SATA controller has room for, and
	// sataControllers how many there may be.
	sataPorts, sataControllers = 6, 3
)

// The slots of the controllers, and of the SATA controllers after q35's own.
const (
	usbSlot    = 0x10
	scsiSlot   = 0x11
	serialSlot = 0x12
)

var sataSlots = []uint{0x19, 0x1a}

// controllerPart are the buses that other devices are on.
//
// +podvisor:entry
var controllerPart = Part{
	Name: "controllers", Build: controllers,
	Devices: func(l *libvirtxml.DomainDeviceList) []Device {
		return devicesOf(l.Controllers, func(_ int, c *libvirtxml.DomainController) Device {
			d := Device{Name: fmt.Sprintf("controller %s %d", c.Type, number(c.Index))}
			if at, ok := controllerPlace(c); ok {
				d.Address, d.At = &c.Address, at
			}
			if c.Type == "virtio-serial" || isVirtio(c.Model) {
				d.Virtio = &Virtio{Model: &c.Model, Share: func() {
					if c.Driver == nil {
						c.Driver = &libvirtxml.DomainControllerDriver{}
					}
					c.Driver.IOMMU = switchedOn
				}}
			}
			return d
		})
	},
}

// controllerPlace is where a controller is by default. It is false for those that
// are no devices on the PCI bus, and for q35's own.
func controllerPlace(c *libvirtxml.DomainController) (*PCIAddress, bool) {
	n := int(number(c.Index))
	switch {
	case c.Model == "none" || c.Type == "pci":
		return nil, false
	case c.Type == "usb":
		return OnRoot(usbSlot, n), true
	case c.Type == "scsi":
		return OnRoot(scsiSlot, n), true
	case c.Type == "virtio-serial":
		return OnRoot(serialSlot, n), true
	case c.Type == "sata" && n > 0:
		return pci.Of(sataSlots, n-1), true
	}
	return nil, false
}

// controllers adds the buses that other devices are on. Those of PCI come last,
// when the addresses are known.
func controllers(b *Draft) error {
	usb := controller("usb", 0, "none")
	if b.hasUSB() {
		usb = controller("usb", 0, "qemu-xhci", func(c *libvirtxml.DomainController) {
			c.USB = &libvirtxml.DomainControllerUSB{Port: new(uint(usbPorts))}
		})
	}
	scsi, serial := nonTransitional, nonTransitional
	if b.Host.Arch == archS390X {
		scsi, serial = "virtio-scsi", ""
	}
	all := []libvirtxml.DomainController{usb}
	// Without a disk it is for those that are attached later.
	if !b.Spec.Devices.DisableHotplug || b.hasDiskOn(vmi.DiskBusSCSI) {
		all = append(all, controller("scsi", 0, scsi))
	}
	all = append(all, controller("virtio-serial", 0, serial))
	last := 0
	for name, p := range b.diskPlaces() {
		i := slices.IndexFunc(b.Spec.Devices.Disks, func(d vmi.Disk) bool { return DiskAlias(d.Name) == name })
		if bus(b.Spec.Devices.Disks[i]) == vmi.DiskBusSATA {
			last = max(last, number26(p.Target)/sataPorts)
		}
	}
	if last >= sataControllers {
		return fmt.Errorf("%s: the guest has room for %d disks on the bus sata: give some the bus virtio or scsi: %w",
			devicesPath.Child("disks"), sataControllers*sataPorts, vmi.ErrInvalid)
	}
	for n := range last {
		all = append(all, controller("sata", uint(n)+1, ""))
	}
	b.Domain.Devices.Controllers = append(b.Domain.Devices.Controllers, all...)
	return nil
}

// hasUSB says that a device of the guest is on the USB.
func (b *Draft) hasUSB() bool {
	return slices.ContainsFunc(b.Host.Parts, func(p Part) bool { return p.NeedsUSB != nil && p.NeedsUSB(b) })
}

func (b *Draft) hasDiskOn(on vmi.DiskBus) bool {
	return slices.ContainsFunc(b.Spec.Devices.Disks, func(d vmi.Disk) bool { return bus(d) == on })
}

// controller is a controller, with what is special about it.
func controller(kind string, index uint, model string, special ...func(*libvirtxml.DomainController)) libvirtxml.DomainController {
	c := libvirtxml.DomainController{Type: kind, Index: &index, Model: model}
	for _, s := range special {
		s(&c)
	}
	return c
}
