package domain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/vmi"
)

// use is what a port is for.
type use string

// The uses of ports. A port that is used for nothing is for a device that is
// attached later, or whose address is the user's choice.
const (
	interfacePorts use = "interfaces"
	diskPorts      use = "disks"
	hostPorts      use = "host devices"
)

// portGroups are the PCI Express ports of a guest in the order of their bus numbers,
// which the firmware counts. Linux names network cards after them, so a group is
// never moved and a new one is added at the end. A domain has the first two groups,
// and all up to the last that it needs: what a port costs is in docs/devices.md.
var portGroups = []struct {
	use   use
	count int
}{
	{interfacePorts, 4}, {diskPorts, 4},
	{diskPorts, 4}, {hostPorts, 4}, {diskPorts, 8}, {interfacePorts, 4}, {hostPorts, 4}, {diskPorts, 8}, {interfacePorts, 8}, {hostPorts, 8}, {diskPorts, 8},
}

// portsSlot is the first slot of bus 0 with ports: eight slots with eight each.
const portsSlot = 0x02

// cardSlots are the slots of bus 0 for interfaces that cannot be behind a port: of
// the first interface, the second, and so on.
var cardSlots = []uint{0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x1c, 0x1d, 0x1e}

// diskSlots are those of disks that cannot be behind a port. Such a domain has no
// ports in these slots.
var diskSlots = []uint{0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09}

const (
	// leastGroups are the groups that every domain has.
	leastGroups = 2
	// spareDisks are the disks for which a guest keeps ports free, so that they can
	// be attached while it runs.
	spareDisks = 2
)

// port is the address behind port n of those for a use, or nil if there is none. The
// number of a port is also that of the bus behind it.
func port(u use, n int) *PCIAddress {
	bus := 1
	for _, g := range portGroups {
		if g.use == u && n < g.count {
			return &PCIAddress{Bus: uint(bus + n)}
		}
		if g.use == u {
			n -= g.count
		}
		bus += g.count
	}
	return nil
}

// portsUpTo is how many ports a domain has that needs the one with this bus number,
// or 0 if there is no such port.
func portsUpTo(bus uint) int {
	n := 0
	for i, g := range portGroups {
		if n += g.count; n >= int(bus) && i+1 >= leastGroups {
			return n
		}
	}
	return 0
}

// allPorts is how many ports a domain can have.
func allPorts() int {
	n := 0
	for _, g := range portGroups {
		n += g.count
	}
	return n
}

// ports adds the root of the bus and the ports that devices at the addresses are
// behind, with some to spare.
func ports(b *Draft, taken map[PCIAddress]string) error {
	root := pciController(0, "pcie-root")
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
		if a := parsePCI(i.PciAddress); a != nil {
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
		for _, at := range candidates(n, flat || conventional(i.Model)) {
			if out[alias].PCI == nil && !taken[*at] {
				out[alias], taken[*at] = Place{PCI: at}, true
			}
		}
	}
	return out
}

// candidates are the addresses that interface n may have: its own, and then all
// others from the first.
func candidates(n int, root bool) []*PCIAddress {
	var all []*PCIAddress
	next := func(i int) *PCIAddress { return port(interfacePorts, i) }
	if root {
		next = func(i int) *PCIAddress { return of(cardSlots, i) }
	}
	for i := 0; next(i) != nil; i++ {
		all = append(all, next(i))
	}
	if n < len(all) {
		all = slices.Insert(all, 0, all[n])
	}
	return all
}
