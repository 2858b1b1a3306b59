package domain

import (
	"errors"
	"fmt"
	"slices"

	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/internal/vmi/pci"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
)

// Slots 0 and 0x1f of bus 0, the root complex, belong to the machine type q35: the host
// bridge, and the bridge to ISA with SATA and SMBus. Each other slot belongs to one kind
// of devices, whose part names it. A device of which a domain has one is there, in the
// slot that it always has.

// spareSlot is a slot with a device in every domain, which a guest needs to find the
// other functions of it. No slot is free: the functions 1 to 3 of this one are for kinds
// of devices that this package gets later, those from firstSpare on for other programs.
const (
	spareSlot  = serialSlot
	firstSpare = 4
)

// Spare is place n on bus 0 of those that no device of this package ever has, or nil if
// there is none of this number. They are for devices that an embedder adds: 0 to 3. A
// device keeps its number, since a guest knows the device by its place.
func Spare(n int) *PCIAddress {
	if n < 0 {
		return nil
	}
	return OnRoot(spareSlot, firstSpare+n)
}

// OnRoot is the address on bus 0 of function n of a slot, or nil if it has no such
// function.
func OnRoot(slot uint, n int) *PCIAddress { return pci.OnRoot(slot, n) }

// express says that the machine type has PCI Express ports. What else there is, libvirt
// lays out.
func (b *Draft) express() bool { return b.Host.Arch != archS390X && hasPorts(b.machineType()) }

// flat says that no device of the guest is behind a PCI Express port: the VMI's
// annotation asks for it, or its virtio devices are conventional PCI devices, as
// transitional ones are.
func (b *Draft) flat() bool {
	return pci.Flat(b.VMI.Annotations, &b.Spec.Devices)
}

// diskPlaces are the places of the disks of the spec.
func (b *Draft) diskPlaces() map[string]Place {
	specs := b.Spec.Devices.Disks
	all := DiskPlaces(specs, b.Host.Places)
	for _, d := range specs {
		alias := DiskAlias(d.Name)
		p := all[alias]
		switch {
		case !b.express() || p.PCI == nil:
			p.PCI = nil
		case b.flat() && requestedPCI(d) == nil && b.Host.Places[alias].PCI == nil:
			p.PCI = pci.Of(diskSlots, number26(p.Target))
		}
		all[alias] = p
	}
	return all
}

// interfacePlaces are the places of the interfaces of the spec.
func (b *Draft) interfacePlaces() map[string]Place {
	specs := b.Spec.Devices.Interfaces
	if !b.express() {
		return map[string]Place{}
	}
	return interfacePlaces(specs, b.Host.Places, b.flat())
}

// addresses gives each device on the PCI bus that has no address yet its own, and
// adds the ports. It is called when all other parts are there.
func addresses(b *Draft) error {
	if !b.express() {
		return nil
	}
	var faults []error
	taken := map[PCIAddress]string{}
	for _, d := range b.placed() {
		if *d.Address == nil {
			*d.Address = pciAddress(d.At)
		}
		if *d.Address == nil {
			faults = append(faults, fmt.Errorf("%s: the PCI bus of the guest has no room for it: remove devices of its kind, "+
				"or give disks the bus scsi and interfaces the model virtio: %w", d.Name, vmi.ErrInvalid))
			continue
		}
		a := PCIAddress{Domain: number((*d.Address).PCI.Domain), Bus: number((*d.Address).PCI.Bus), Slot: number((*d.Address).PCI.Slot), Function: number((*d.Address).PCI.Function)}
		if other, ok := taken[a]; ok {
			faults = append(faults, fmt.Errorf("%s: its PCI address %s is that of %s: choose another: %w", d.Name, a, other, vmi.ErrInvalid))
			continue
		}
		taken[a] = d.Name
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	if err := ports(b, taken); err != nil {
		return err
	}
	b.multifunction()
	return nil
}

// placed are the devices on the PCI bus but for its ports. Those that have an address
// come last: if it is that of another device, it is theirs that is wrong.
func (b *Draft) placed() []Device {
	all := b.onPCI()
	has := func(d Device) bool { return *d.Address != nil }
	return slices.Concat(slices.DeleteFunc(slices.Clone(all), has), slices.DeleteFunc(all, func(d Device) bool { return !has(d) }))
}

// multifunction marks the devices at function 0 of slots that have several.
func (b *Draft) multifunction() {
	first, several := map[PCIAddress]*libvirtxml.DomainAddressPCI{}, map[PCIAddress]bool{}
	note := func(a *libvirtxml.DomainAddress) {
		if a == nil || a.PCI == nil {
			return
		}
		slot := PCIAddress{Domain: number(a.PCI.Domain), Bus: number(a.PCI.Bus), Slot: number(a.PCI.Slot)}
		if number(a.PCI.Function) == 0 {
			first[slot] = a.PCI
		} else {
			several[slot] = true
		}
	}
	for _, d := range b.onPCI() {
		note(*d.Address)
	}
	for _, c := range b.Domain.Devices.Controllers {
		if c.Type == "pci" {
			note(c.Address)
		}
	}
	for slot := range several {
		if a := first[slot]; a != nil {
			a.MultiFunction = "on"
		}
	}
}

// The architectures in libvirt's words.
const (
	archX86   = "x86_64"
	archARM   = "aarch64"
	archS390X = "s390x"
)

// archOf is an architecture, which is written as in GOARCH, in libvirt's words. One that
// is not known stays as it is.
func archOf(goarch string) string {
	switch goarch {
	case defaults.AMD64:
		return archX86
	case defaults.ARM64:
		return archARM
	}
	return goarch // s390x is the same
}
