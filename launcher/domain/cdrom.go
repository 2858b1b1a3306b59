package domain

import (
	"slices"

	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/vmi"
)

// cdrom makes a CD-ROM drive of a disk. Nothing that a guest sends can write to its
// disc, whatever the spec says.
func cdrom(out *libvirtxml.DomainDisk, d vmi.CDRomTarget) {
	out.Device = "cdrom"
	out.Target.Tray = string(d.Tray)
}

// cdromFaults are why there is no such drive.
func cdromFaults(d vmi.Disk, from Disk) []string {
	var faults []string
	switch on := bus(d); {
	case on == vmi.DiskBusVirtio:
		faults = append(faults, "is a CD-ROM drive on the bus virtio, which has none: use sata, scsi or usb")
	case on == vmi.DiskBusUSB && from.Path == "":
		faults = append(faults, "is a drive on the bus usb without a volume, and there such a drive is never empty: use sata or scsi, or name a volume")
	}
	return faults
}

// isEmpty says that the disk is a drive without a volume.
func (b *Draft) isEmpty(d vmi.Disk) bool {
	return d.CDRom != nil && !slices.ContainsFunc(b.VMI.Spec.Volumes, func(v vmi.Volume) bool { return v.Name == d.Name })
}
