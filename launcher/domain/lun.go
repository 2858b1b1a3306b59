package domain

import (
	"fmt"

	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/vmi"
)

// lun passes the guest's SCSI commands to the device of the node. What is written of
// blocks and discarding is between the guest and that device.
func lun(out *libvirtxml.DomainDisk) {
	out.Device = "lun"
	out.BlockIO = nil
}

// lunFaults are why the guest's SCSI commands cannot reach a device.
func lunFaults(d vmi.Disk, from Disk) []string {
	var faults []string
	if on := bus(d); on != vmi.DiskBusSCSI {
		faults = append(faults, fmt.Sprintf("is a lun on the bus %s, and only those on scsi take SCSI commands: set lun.bus to scsi", on))
	}
	if !from.Device || from.Format != storage.Raw {
		faults = append(faults, fmt.Sprintf("is a lun, and %s is no block device: use a claim in block mode", from.Path))
	}
	if d.Serial != "" {
		faults = append(faults, "is a lun with a serial number, and a guest sees that of the device: leave serial out")
	}
	if d.BlockSize != nil {
		faults = append(faults, "is a lun with a block size, and a guest sees that of the device: leave blockSize out")
	}
	return faults
}
