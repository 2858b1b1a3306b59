package domain

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
)

// The slots of bus 0, the root complex. A device of which a domain has one is
// there, in the slot that it always has. Slots 0 and 0x1f belong to the machine
// type q35: the host bridge, and the bridge to ISA with SATA and SMBus.
const (
	slotVideo       = 0x01
	slotPorts       = 0x02 // to 0x09, eight ports in each
	slotFilesystems = 0x0a // eight functions
	slotUSB         = 0x10
	slotSCSI        = 0x11
	slotSerial      = 0x12
	slotBalloon     = 0x13
	slotRNG         = 0x14
	slotWatchdog    = 0x15
	slotVSOCK       = 0x16
	slotPanic       = 0x17
	slotInputs      = 0x18 // eight functions
	slotSATA        = 0x19 // and 0x1a, for the controllers after q35's own
	slotSound       = 0x1b
)

// cardSlots are the slots of bus 0 for interfaces that cannot be behind a port: of
// the first interface, the second, and so on.
var cardSlots = []uint{0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x1c, 0x1d, 0x1e}

// diskSlots are those of disks that cannot be behind a port. Such a domain has no
// ports in these slots.
var diskSlots = []uint{0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09}

// functions are how many devices a slot has room for.
const functions = 8

// onRoot is the address on bus 0 of function n of a slot, or nil if it has no such
// function.
func onRoot(slot uint, n int) *PCIAddress {
	if n >= functions {
		return nil
	}
	return &PCIAddress{Slot: slot, Function: uint(n)}
}

// of is the address on bus 0 of device n of those that have a slot each.
func of(slots []uint, n int) *PCIAddress {
	if n >= len(slots) {
		return nil
	}
	return onRoot(slots[n], 0)
}

// String is the address as lspci and the spec write it.
func (a PCIAddress) String() string {
	return fmt.Sprintf("%04x:%02x:%02x.%x", a.Domain, a.Bus, a.Slot, a.Function)
}

// parsePCI is an address as a spec has it, or nil if it is none.
func parsePCI(s string) *PCIAddress {
	var a PCIAddress
	if n, err := fmt.Sscanf(s, "%x:%x:%x.%x", &a.Domain, &a.Bus, &a.Slot, &a.Function); err != nil || n != 4 {
		return nil
	}
	return &a
}

// express says that the machine type has PCI Express ports: q35 and virt have. What
// else there is, libvirt lays out.
func (b *Draft) express() bool {
	t := machineType(b.Spec.Machine)
	return b.Host.Arch != archS390X && (strings.Contains(t, "q35") || t == "virt" || strings.HasPrefix(t, "virt-"))
}

// flat says that no device of the guest is behind a PCI Express port: the VMI's
// annotation asks for it, or its virtio devices are conventional PCI devices, as
// transitional ones are.
func (b *Draft) flat() bool {
	return b.VMI.Annotations[vmi.RootComplexAnnotation] == "true" || isOn(b.Spec.Devices.UseVirtioTransitional, false)
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
			p.PCI = of(diskSlots, number26(p.Target))
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

// device is a device on the PCI bus.
type device struct {
	name    string // for people
	address **libvirtxml.DomainAddress
	// at is where it is if it has no address yet. Nil: there is no room.
	at *PCIAddress
}

// addresses gives each device on the PCI bus that has no address yet its own, and
// adds the ports. It is called when all other parts are there.
func addresses(b *Draft) error {
	if !b.express() {
		return nil
	}
	var faults []error
	taken := map[PCIAddress]string{}
	for _, d := range pciDevices(b.Domain.Devices) {
		if *d.address == nil {
			*d.address = pciAddress(d.at)
		}
		if *d.address == nil {
			faults = append(faults, fmt.Errorf("%s: the PCI bus of the guest has no room for it: remove devices of its kind, or give disks the bus scsi and interfaces the model virtio: %w", d.name, vmi.ErrInvalid))
			continue
		}
		a := PCIAddress{number((*d.address).PCI.Domain), number((*d.address).PCI.Bus), number((*d.address).PCI.Slot), number((*d.address).PCI.Function)}
		if other, ok := taken[a]; ok {
			faults = append(faults, fmt.Errorf("%s: its PCI address %s is that of %s: choose another: %w", d.name, a, other, vmi.ErrInvalid))
			continue
		}
		taken[a] = d.name
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	if err := ports(b, taken); err != nil {
		return err
	}
	multifunction(b.Domain.Devices)
	return nil
}

// pciDevices are the devices on the PCI bus but for its ports, with where they are
// by default.
func pciDevices(l *libvirtxml.DomainDeviceList) []device {
	var all []device
	add := func(name string, address **libvirtxml.DomainAddress, at *PCIAddress) {
		all = append(all, device{name, address, at})
	}
	for i := range l.Videos {
		if v := &l.Videos[i]; v.Model.Type != "ramfb" && v.Model.Type != "none" {
			add("the graphics card", &v.Address, onRoot(slotVideo, i))
		}
	}
	for i := range l.Controllers {
		c := &l.Controllers[i]
		if at, ok := controllerAddress(c); ok {
			add(fmt.Sprintf("controller %s %d", c.Type, *c.Index), &c.Address, at)
		}
	}
	for i := range l.Disks {
		if d := &l.Disks[i]; d.Target.Bus == string(vmi.DiskBusVirtio) {
			add("disk "+strings.TrimPrefix(d.Alias.Name, aliasPrefix), &d.Address, nil)
		}
	}
	for i := range l.Interfaces {
		d := &l.Interfaces[i]
		add("interface "+strings.TrimPrefix(d.Alias.Name, InterfaceAlias("")), &d.Address, nil)
	}
	hosted := 0
	for i := range l.Hostdevs {
		if h := &l.Hostdevs[i]; h.SubsysPCI != nil || h.SubsysMDev != nil {
			add(fmt.Sprintf("host device %d", hosted), &h.Address, port(hostPorts, hosted))
			hosted++
		}
	}
	for i := range l.Filesystems {
		add(fmt.Sprintf("file system %d", i), &l.Filesystems[i].Address, onRoot(slotFilesystems, i))
	}
	virtio := 0
	for i := range l.Inputs {
		if d := &l.Inputs[i]; d.Bus == string(vmi.InputBusVirtio) {
			add(fmt.Sprintf("input %d", i), &d.Address, onRoot(slotInputs, virtio))
			virtio++
		}
	}
	for i := range l.Sounds {
		add("the sound card", &l.Sounds[i].Address, onRoot(slotSound, i))
	}
	for i := range l.Watchdogs {
		add("the watchdog", &l.Watchdogs[i].Address, onRoot(slotWatchdog, i))
	}
	for i := range l.RNGs {
		add("the random number generator", &l.RNGs[i].Address, onRoot(slotRNG, i))
	}
	for i := range l.Panics {
		if p := &l.Panics[i]; p.Model == string(vmi.PanicDevicePVPanic) {
			add("the panic device", &p.Address, onRoot(slotPanic, i))
		}
	}
	if m := l.MemBalloon; m != nil && m.Model != "none" {
		add("the balloon", &m.Address, onRoot(slotBalloon, 0))
	}
	if v := l.VSock; v != nil {
		add("the vsock device", &v.Address, onRoot(slotVSOCK, 0))
	}
	return all
}

// controllerAddress is where a controller is by default. It is false for those that
// are no devices on the PCI bus, and for q35's own.
func controllerAddress(c *libvirtxml.DomainController) (*PCIAddress, bool) {
	n := int(number(c.Index))
	switch {
	case c.Model == "none" || c.Type == "pci":
		return nil, false
	case c.Type == "usb":
		return onRoot(slotUSB, n), true
	case c.Type == "scsi":
		return onRoot(slotSCSI, n), true
	case c.Type == "virtio-serial":
		return onRoot(slotSerial, n), true
	case c.Type == "sata" && n > 0:
		return of([]uint{slotSATA, slotSATA + 1}, n-1), true
	}
	return nil, false
}

// multifunction marks the devices at function 0 of slots that have several.
func multifunction(l *libvirtxml.DomainDeviceList) {
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
	for _, d := range pciDevices(l) {
		note(*d.address)
	}
	for _, c := range l.Controllers {
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

// conventional says that an interface's card is a PCI device that is no PCI Express
// device, so that it cannot be behind a port.
func conventional(m vmi.InterfaceModel) bool {
	return slices.Contains([]vmi.InterfaceModel{vmi.InterfaceModelE1000, vmi.InterfaceModelNE2kPCI, vmi.InterfaceModelPCnet, vmi.InterfaceModelRTL8139}, m)
}

// The architectures in libvirt's words.
const (
	archX86   = "x86_64"
	archARM   = "aarch64"
	archS390X = "s390x"
)

// architectures are GOARCH's words in libvirt's.
var architectures = map[string]string{defaults.AMD64: archX86, defaults.ARM64: archARM, defaults.S390X: archS390X}
