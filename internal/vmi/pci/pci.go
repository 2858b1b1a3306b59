// Package pci says which addresses a guest's PCI bus has: those behind its PCI Express
// ports, and those on bus 0, the root complex.
//
// package launcher/domain gives devices their places by it, and package vmi/validate
// judges the addresses that users choose. A guest knows a device by its address, so
// nothing here ever changes what is there. The package computes; it touches nothing.
package pci

import (
	"fmt"
	"slices"

	"github.com/podvisor/podvisor/vmi"
)

// Address is the address of a PCI device.
type Address struct{ Domain, Bus, Slot, Function uint }

// String is the address as lspci and the spec write it.
func (a Address) String() string {
	return fmt.Sprintf("%04x:%02x:%02x.%x", a.Domain, a.Bus, a.Slot, a.Function)
}

// Parse is an address as a spec has it, or nil if it is none.
func Parse(s string) *Address {
	var a Address
	if n, err := fmt.Sscanf(s, "%x:%x:%x.%x", &a.Domain, &a.Bus, &a.Slot, &a.Function); err != nil || n != 4 {
		return nil
	}
	return &a
}

// Use is what a port is for.
type Use string

// The uses of ports. A port that is used for nothing is for a device that is
// attached later, or whose address is the user's choice.
const (
	Interfaces  Use = "interfaces"
	Disks       Use = "disks"
	HostDevices Use = "host devices"
)

// groups are the PCI Express ports of a guest in the order of their bus numbers,
// which the firmware counts. Linux names network cards after them, so a group is
// never moved and a new one is added at the end. A domain has the first [LeastGroups],
// and all up to the last that it needs: what a port costs is in docs/devices.md.
var groups = []struct {
	use   Use
	count int
}{
	{Interfaces, 4}, {Disks, 4},
	{Disks, 4}, {HostDevices, 4}, {Disks, 8}, {Interfaces, 4}, {HostDevices, 4}, {Disks, 8}, {Interfaces, 8}, {HostDevices, 8}, {Disks, 8},
}

// LeastGroups are the groups of ports that every domain has.
const LeastGroups = 2

const (
	// PortsSlot is the first slot of bus 0 with ports: eight slots with eight each.
	PortsSlot = 0x02
	// Functions are how many devices a slot has room for.
	Functions = 8
)

// cardSlots are the slots of bus 0 for interfaces that cannot be behind a port: of
// the first interface, the second, and so on.
var cardSlots = []uint{0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x1c, 0x1d, 0x1e}

// diskSlots are those of disks that cannot be behind a port. Such a domain has no
// ports in these slots.
var diskSlots = []uint{0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09}

// CardSlots are the slots of bus 0 for interfaces that are not behind a port.
func CardSlots() []uint { return slices.Clone(cardSlots) }

// DiskSlots are the slots of bus 0 for disks of a domain without ports.
func DiskSlots() []uint { return slices.Clone(diskSlots) }

// OnRoot is the address on bus 0 of function n of a slot, or nil if it has no such
// function.
func OnRoot(slot uint, n int) *Address {
	if n >= Functions {
		return nil
	}
	return &Address{Slot: slot, Function: uint(n)}
}

// Of is the address on bus 0 of device n of those that have a slot each, or nil if there
// is no slot for it.
func Of(slots []uint, n int) *Address {
	if n >= len(slots) {
		return nil
	}
	return OnRoot(slots[n], 0)
}

// Port is the address behind port n of those for a use, or nil if there is none. The
// number of a port is also that of the bus behind it.
func Port(u Use, n int) *Address {
	bus := 1
	for _, g := range groups {
		if g.use == u && n < g.count {
			return &Address{Bus: uint(bus + n)}
		}
		if g.use == u {
			n -= g.count
		}
		bus += g.count
	}
	return nil
}

// PortsUpTo is how many ports a domain has that needs the one with this bus number,
// or 0 if there is no such port.
func PortsUpTo(bus uint) int {
	n := 0
	for i, g := range groups {
		if n += g.count; n >= int(bus) && i+1 >= LeastGroups {
			return n
		}
	}
	return 0
}

// AllPorts is how many ports a domain can have.
func AllPorts() int {
	n := 0
	for _, g := range groups {
		n += g.count
	}
	return n
}

// Candidates are the addresses that interface n may have: its own, and then all
// others from the first. root says that it cannot be behind a port.
func Candidates(n int, root bool) []*Address {
	var all []*Address
	next := func(i int) *Address { return Port(Interfaces, i) }
	if root {
		next = func(i int) *Address { return Of(cardSlots, i) }
	}
	for i := 0; next(i) != nil; i++ {
		all = append(all, next(i))
	}
	if n < len(all) {
		all = slices.Insert(all, 0, all[n])
	}
	return all
}

// Conventional says that an interface's card is a PCI device that is no PCI Express
// device, so that it cannot be behind a port.
func Conventional(m vmi.InterfaceModel) bool {
	return slices.Contains([]vmi.InterfaceModel{vmi.InterfaceModelE1000, vmi.InterfaceModelNE2kPCI, vmi.InterfaceModelPCnet, vmi.InterfaceModelRTL8139}, m)
}

// Flat says that no device of the guest is behind a PCI Express port: the VMI's
// annotations ask for it, or its virtio devices are conventional PCI devices, as
// transitional ones are.
func Flat(annotations map[string]string, d *vmi.Devices) bool {
	return annotations[vmi.RootComplexAnnotation] == "true" || d.UseVirtioTransitional != nil && *d.UseVirtioTransitional
}
