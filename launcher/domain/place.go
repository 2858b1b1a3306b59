package domain

import (
	"strings"

	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/internal/vmi/pci"
	"github.com/podvisor/podvisor/vmi"
)

// Place is where a device is on its bus, as the guest sees it. The zero value is a
// place that is not known.
type Place struct {
	// Target is a disk's name on its bus, for example vda; on SATA it is its address
	// too. Empty: not known, or no disk.
	Target string
	// Unit is a disk's unit on the SCSI controller. Nil: not known, or on no SCSI
	// controller.
	Unit *uint
	// PCI is the device's PCI address. Nil: not known, or the device has none.
	PCI *PCIAddress
}

// PCIAddress is the address of a PCI device.
type PCIAddress = pci.Address

// StatusPlaces are the places that v's status records, by the alias of the device.
func StatusPlaces(v *vmi.VirtualMachineInstance) map[string]Place {
	known := map[string]Place{}
	for _, s := range v.Status.VolumeStatus {
		known[DiskAlias(s.Name)] = Place{Target: s.Target}
	}
	return known
}

// DiskPlaces returns the places of the disks, by their aliases. A disk whose place
// is known keeps it; the others get the lowest that are free, in their order. A
// place that is known of a device that is not among the disks is not free: the
// device may be there until it is detached. The PCI address of a disk on the bus
// virtio follows from its target, unless the spec names another; it is missing
// where the guest has no port for the target.
func DiskPlaces(disks []vmi.Disk, known map[string]Place) map[string]Place {
	targets, units := map[string]bool{}, map[uint]bool{}
	out := map[string]Place{}
	for _, d := range disks {
		out[DiskAlias(d.Name)] = Place{}
	}
	for alias, p := range known {
		if _, ok := out[alias]; !ok {
			targets[p.Target] = true
			if p.Unit != nil {
				units[*p.Unit] = true
			}
		}
	}
	for _, d := range disks {
		alias := DiskAlias(d.Name)
		out[alias] = kept(bus(d), known[alias], targets, units)
	}
	for _, d := range disks {
		p := out[DiskAlias(d.Name)]
		for n := 0; p.Target == ""; n++ {
			if t := targetPrefix(bus(d)) + letters(n); !targets[t] {
				p.Target, targets[t] = t, true
			}
		}
		for n := uint(0); p.Unit == nil && bus(d) == vmi.DiskBusSCSI; n++ {
			if !units[n] {
				p.Unit, units[n] = &n, true
			}
		}
		if at := requestedPCI(d); at != nil {
			p.PCI = at
		} else if p.PCI == nil && bus(d) == vmi.DiskBusVirtio {
			p.PCI = port(diskPorts, number26(p.Target))
		}
		out[DiskAlias(d.Name)] = p
	}
	return out
}

// requestedPCI is the PCI address that the spec of a disk names, or nil.
func requestedPCI(d vmi.Disk) *PCIAddress {
	if d.Disk == nil || bus(d) != vmi.DiskBusVirtio {
		return nil
	}
	return pci.Parse(d.Disk.PciAddress)
}

// kept is what a disk on the bus keeps of a known place: what is right for the bus
// and not taken. It is taken then.
func kept(on vmi.DiskBus, known Place, targets map[string]bool, units map[uint]bool) Place {
	var p Place
	suffix, ok := strings.CutPrefix(known.Target, targetPrefix(on))
	if ok && suffix != "" && strings.Trim(suffix, "abcdefghijklmnopqrstuvwxyz") == "" && !targets[known.Target] {
		p.Target, targets[known.Target] = known.Target, true
	}
	if on == vmi.DiskBusSCSI && known.Unit != nil && !units[*known.Unit] {
		p.Unit, units[*known.Unit] = known.Unit, true
	}
	if on == vmi.DiskBusVirtio {
		p.PCI = known.PCI
	}
	return p
}

// targetPrefix begins the names of disks on a bus.
func targetPrefix(on vmi.DiskBus) string {
	if on == vmi.DiskBusVirtio {
		return "vd"
	}
	return "sd"
}

// letters counts a, b, …, z, aa, ab, …
func letters(n int) string {
	s := ""
	for ; n >= 0; n = n/26 - 1 {
		s = string(rune('a'+n%26)) + s
	}
	return s
}

// number26 is the number of a disk's name on its bus, as letters counts.
func number26(target string) int {
	n := 0
	for _, c := range target[min(len(target), len("vd")):] {
		n = 26*n + int(c-'a') + 1
	}
	return n - 1
}

// pciAddress is a PCI address in libvirt's form.
func pciAddress(a *PCIAddress) *libvirtxml.DomainAddress {
	if a == nil {
		return nil
	}
	return &libvirtxml.DomainAddress{PCI: &libvirtxml.DomainAddressPCI{
		Domain: &a.Domain, Bus: &a.Bus, Slot: &a.Slot, Function: &a.Function,
	}}
}

func number(n *uint) uint {
	if n == nil {
		return 0
	}
	return *n
}
