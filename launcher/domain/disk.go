package domain

import (
	"errors"
	"fmt"

	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/vmi"
)

// disks are the machine's disks with their names on their buses.
func disks(specs []vmi.Disk, h Host) ([]libvirtxml.DomainDisk, error) {
	var all []libvirtxml.DomainDisk
	var faults []error
	targets := Targets(specs)
	for i, d := range specs {
		from, ok := h.Disks[d.Name]
		if !ok {
			faults = append(faults, fmt.Errorf("disk %s is attached to nothing", d.Name))
			continue
		}
		all = append(all, disk(d, from, targets[i], scsiUnit(specs, i)))
	}
	return all, errors.Join(faults...)
}

// disk is one disk. unit is its place on the SCSI controller, if it is on one.
func disk(d vmi.Disk, from Disk, target string, unit uint) libvirtxml.DomainDisk {
	out := libvirtxml.DomainDisk{
		Device: "disk",
		Driver: &libvirtxml.DomainDiskDriver{
			Name:        "qemu",
			Type:        string(from.Format),
			Cache:       cache(from),
			IO:          inputOutput(from),
			ErrorPolicy: "stop",
			Discard:     "unmap",
		},
		Source:       diskSource(from.Path, from.Device),
		BackingStore: backing(from),
		Target:       &libvirtxml.DomainDiskTarget{Dev: target, Bus: string(bus(d))},
		Serial:       d.Serial,
		Alias:        &libvirtxml.DomainAlias{Name: DiskAlias(d.Name)},
	}
	if d.BootOrder != nil {
		out.Boot = &libvirtxml.DomainDeviceBoot{Order: *d.BootOrder}
	}
	switch bus(d) {
	case vmi.DiskBusVirtio:
		out.Model = nonTransitional
	case vmi.DiskBusSCSI:
		out.Address = &libvirtxml.DomainAddress{Drive: &libvirtxml.DomainAddressDrive{
			Controller: new(uint(0)), Bus: new(uint(0)), Target: new(uint(0)), Unit: &unit,
		}}
	}
	return out
}

// backing is what the disk is an overlay of, and an end in any case: without one
// libvirt looks into the file for more, and in a tenant's image it would find
// what the tenant wrote there.
func backing(d Disk) *libvirtxml.DomainDiskBackingStore {
	end := &libvirtxml.DomainDiskBackingStore{}
	over, ok := d.Source.(storage.Overlay)
	if !ok {
		return end
	}
	return &libvirtxml.DomainDiskBackingStore{
		Format:       &libvirtxml.DomainDiskFormat{Type: string(over.Base.Format)},
		Source:       diskSource(over.Base.Path, false),
		BackingStore: end,
	}
}

func diskSource(path string, device bool) *libvirtxml.DomainDiskSource {
	if device {
		return &libvirtxml.DomainDiskSource{Block: &libvirtxml.DomainDiskSourceBlock{Dev: path}}
	}
	return &libvirtxml.DomainDiskSource{File: &libvirtxml.DomainDiskSourceFile{File: path}}
}

// cache leaves the page cache out where that is possible: the guest has one of
// its own, and the node's is not the pod's to fill.
func cache(d Disk) string {
	if d.DirectIO {
		return "none"
	}
	return "writethrough"
}

// inputOutput is the kernel's asynchronous I/O for devices. On files that grow
// it blocks QEMU, so there QEMU's threads, its default, do the work. io_uring is
// refused by the seccomp profile of the pod.
func inputOutput(d Disk) string {
	if d.Device && d.DirectIO {
		return "native"
	}
	return ""
}

func bus(d vmi.Disk) vmi.DiskBus {
	if d.Disk == nil || d.Disk.Bus == "" {
		return vmi.DiskBusSATA
	}
	return d.Disk.Bus
}

// Targets are the names of disks on their buses: vda, vdb, … for virtio and
// sda, sdb, … for all others.
func Targets(specs []vmi.Disk) []string {
	names := make([]string, len(specs))
	next := map[string]int{}
	for i, d := range specs {
		prefix := "sd"
		if bus(d) == vmi.DiskBusVirtio {
			prefix = "vd"
		}
		names[i] = prefix + letters(next[prefix])
		next[prefix]++
	}
	return names
}

// letters counts a, b, …, z, aa, ab, …
func letters(n int) string {
	s := ""
	for ; n >= 0; n = n/26 - 1 {
		s = string(rune('a'+n%26)) + s
	}
	return s
}

// scsiUnit is the number of SCSI disks before the i-th disk.
func scsiUnit(specs []vmi.Disk, i int) uint {
	var n uint
	for _, d := range specs[:i] {
		if bus(d) == vmi.DiskBusSCSI {
			n++
		}
	}
	return n
}
