package domain

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/vmi"
)

// disks adds the disks of the spec.
func disks(b *build) error {
	var faults []error
	specs := b.spec.Devices.Disks
	places := b.diskPlaces()
	for i, d := range specs {
		from, ok := b.host.Disks[d.Name]
		if !ok {
			faults = append(faults, fmt.Errorf("%s: disk %s has no attachment", devicesPath.Child("disks").Index(i), d.Name))
			continue
		}
		if from.ReadOnly && bus(d) == vmi.DiskBusSATA {
			faults = append(faults, fmt.Errorf("%s: disk %s is read-only, which disks on the bus sata cannot be: use virtio or scsi: %w", devicesPath.Child("disks").Index(i), d.Name, vmi.ErrInvalid))
			continue
		}
		b.domain.Devices.Disks = append(b.domain.Devices.Disks, disk(d, from, places[DiskAlias(d.Name)]))
	}
	return errors.Join(faults...)
}

// disk is one disk, as it is there at boot and as it is attached to a guest that
// runs.
func disk(d vmi.Disk, from Disk, at Place) libvirtxml.DomainDisk {
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
		Target:       &libvirtxml.DomainDiskTarget{Dev: at.Target, Bus: string(bus(d))},
		Serial:       d.Serial,
		Alias:        &libvirtxml.DomainAlias{Name: DiskAlias(d.Name)},
	}
	if from.ReadOnly {
		out.ReadOnly = &libvirtxml.DomainDiskReadOnly{}
	}
	if d.BootOrder != nil {
		out.Boot = &libvirtxml.DomainDeviceBoot{Order: *d.BootOrder}
	}
	switch bus(d) {
	case vmi.DiskBusVirtio:
		out.Model = nonTransitional
		out.Address = pciAddress(at.PCI)
	case vmi.DiskBusSCSI:
		out.Address = &libvirtxml.DomainAddress{Drive: &libvirtxml.DomainAddressDrive{
			Controller: new(uint(0)), Bus: new(uint(0)), Target: new(uint(0)), Unit: at.Unit,
		}}
	}
	return out
}

// backing is what the disk is an overlay of, and an end in any case: without one
// libvirt looks for a backing file in the disk's own header, and a tenant may have
// written that header.
func backing(d Disk) *libvirtxml.DomainDiskBackingStore {
	end := &libvirtxml.DomainDiskBackingStore{}
	over, ok := d.Source.(storage.Overlay)
	if !ok {
		return end
	}
	return &libvirtxml.DomainDiskBackingStore{
		Format:       &libvirtxml.DomainDiskFormat{Type: string(over.Base.Format)},
		Source:       diskSource(over.Base.Path, over.Base.Device),
		BackingStore: end,
	}
}

func diskSource(path string, device bool) *libvirtxml.DomainDiskSource {
	if device {
		return &libvirtxml.DomainDiskSource{Block: &libvirtxml.DomainDiskSourceBlock{Dev: path}}
	}
	return &libvirtxml.DomainDiskSource{File: &libvirtxml.DomainDiskSourceFile{File: path}}
}

// cache bypasses the page cache where that is possible: the guest has a cache of
// its own, and that of the node is not the pod's to fill.
func cache(d Disk) string {
	if d.DirectIO {
		return "none"
	}
	return "writethrough"
}

// inputOutput is the kernel's asynchronous I/O for devices. On files that grow it
// blocks QEMU, so there QEMU's threads, its default, are used. io_uring is refused
// by the pod's seccomp profile.
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

// devicesPath is where the devices are in the VMI.
var devicesPath = field.NewPath("spec", "domain", "devices")
