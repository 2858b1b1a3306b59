package domain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/internal/vmi/pci"
	"github.com/podvisor/podvisor/vmi"
)

// The uses of ports: see package pci.
const (
	interfacePorts = pci.Interfaces
	diskPorts      = pci.Disks
	hostPorts      = pci.HostDevices
)

const (
	portsSlot = pci.PortsSlot
	functions = pci.Functions
)

var (
	cardSlots = pci.CardSlots()
	diskSlots = pci.DiskSlots()
)

// spareDisks are the disks for which a guest keeps ports free, so that they can
// be attached while it runs.
const spareDisks = 2

func port(u pci.Use, n int) *PCIAddress { return pci.Port(u, n) }

func portsUpTo(bus uint) int { return pci.PortsUpTo(bus) }

func allPorts() int { return pci.AllPorts() }

// ports adds the root of the bus and the ports that devices at the addresses are
// behind, with some to spare.
func ports(b *Draft, taken map[PCIAddress]string) error {
	root := pciController(0, "pcie-root")
	if b.VMI.Annotations[vmi.NoPCIHole64Annotation] == "true" {
		root.PCI.Hole64 = &libvirtxml.DomainControllerPCIHole64{Unit: "KiB"}
	}
	if b.flat() {
		b.Domain.Devices.Controllers = append([]libvirtxml.DomainController{root}, b.Domain.Devices.Controllers...)
		return rooted(taken)
	}
	most, disks := uint(0), 0
	for _, a := range sorted(taken) {
		if a.Domain != 0 || a.Bus > 0 && (portsUpTo(a.Bus) == 0 || a.Slot != 0 || a.Function != 0) {
			return fmt.Errorf("%s: the guest has no PCI address %s: it has those of bus 00, and 00.0 of the buses 01 to %02x: %w", taken[a], a, allPorts(), vmi.ErrInvalid)
		}
		most = max(most, a.Bus)
	}
	for _, d := range b.Domain.Devices.Disks {
		if d.Target.Bus == string(vmi.DiskBusVirtio) {
			disks = max(disks, number26(d.Target.Dev)+1)
		}
	}
	spare := port(diskPorts, disks+spareDisks-1)
	if spare != nil && !b.Spec.Devices.DisableHotplug {
		most = max(most, spare.Bus)
	}
	count := portsUpTo(most)
	if b.Spec.Devices.DisableHotplug {
		count = int(most)
	}
	all := []libvirtxml.DomainController{root}
	for n := range count {
		all = append(all, rootPort(n, b.Spec.Devices.DisableHotplug))
		if at := (PCIAddress{Slot: portsSlot + uint(n)/functions, Function: uint(n) % functions}); taken[at] != "" {
			return fmt.Errorf("%s: its PCI address %s is that of a port: choose another: %w", taken[at], at, vmi.ErrInvalid)
		}
	}
	b.Domain.Devices.Controllers = append(all, b.Domain.Devices.Controllers...)
	return nil
}

// rooted says which device of a domain without ports is not on bus 0.
func rooted(taken map[PCIAddress]string) error {
	for _, a := range sorted(taken) {
		if a.Bus > 0 || a.Domain > 0 {
			return fmt.Errorf("%s: the guest has no PCI address %s: all its devices are on bus 00: %w", taken[a], a, vmi.ErrInvalid)
		}
	}
	return nil
}

func sorted(taken map[PCIAddress]string) []PCIAddress {
	return slices.SortedFunc(maps.Keys(taken), func(a, b PCIAddress) int { return strings.Compare(a.String(), b.String()) })
}

// rootPort is port n of a domain, counted from 0. What is behind a fixed one stays.
func rootPort(n int, fixed bool) libvirtxml.DomainController {
	c := pciController(uint(n)+1, "pcie-root-port")
	c.PCI.Target = &libvirtxml.DomainControllerPCITarget{Chassis: new(uint(n) + 1), Port: new(uint(n) + 0x10)}
	if fixed {
		c.PCI.Target.Hotplug = "off"
	}
	c.Address = pciAddress(&PCIAddress{Slot: portsSlot + uint(n)/functions, Function: uint(n) % functions})
	return c
}

func pciController(index uint, model string) libvirtxml.DomainController {
	return controller("pci", index, model, func(c *libvirtxml.DomainController) { c.PCI = &libvirtxml.DomainControllerPCI{} })
}

// interfacePlaces are the places of the interfaces, by their aliases: what the spec
// names, what is known, or the place of their position in the list. A place that is
// known of an interface that is not in the list is not free.
func interfacePlaces(specs []vmi.Interface, known map[string]Place, flat bool) map[string]Place {
	out, taken := map[string]Place{}, map[PCIAddress]bool{}
	for _, i := range specs {
		p := known[InterfaceAlias(i.Name)].PCI
		if a := pci.Parse(i.PciAddress); a != nil {
			p = a
		}
		out[InterfaceAlias(i.Name)] = Place{PCI: p}
	}
	for alias, p := range known {
		if _, ok := out[alias]; !ok && p.PCI != nil {
			taken[*p.PCI] = true
		}
	}
	for _, p := range out {
		if p.PCI != nil {
			taken[*p.PCI] = true
		}
	}
	for n, i := range specs {
		alias := InterfaceAlias(i.Name)
		for _, at := range pci.Candidates(n, flat || pci.Conventional(i.Model)) {
			if out[alias].PCI == nil && !taken[*at] {
				out[alias], taken[*at] = Place{PCI: at}, true
			}
		}
	}
	return out
}
