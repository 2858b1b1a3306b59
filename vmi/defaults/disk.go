package defaults

import (
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podvisor/podvisor/vmi"
)

// disks gives every volume that nothing shows a disk, and every disk a bus.
func disks(s *vmi.VirtualMachineInstanceSpec) {
	shown(s)
	d := &s.Domain.Devices
	read := map[string]bool{}
	for _, v := range s.Volumes {
		read[v.Name] = v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ReadOnly
	}
	for i := range d.Disks {
		disk(&d.Disks[i], s.Architecture, read[d.Disks[i].Name])
	}
}

// shown gives every volume that nothing shows a disk.
func shown(s *vmi.VirtualMachineInstanceSpec) {
	d := &s.Domain.Devices
	shown := map[string]bool{}
	for _, k := range d.Disks {
		shown[k.Name] = true
	}
	for _, f := range d.Filesystems {
		shown[f.Name] = true
	}
	for _, v := range s.Volumes {
		// A name that is none is refused where it was written.
		if !shown[v.Name] && len(validation.IsDNS1123Label(v.Name)) == 0 {
			d.Disks = append(d.Disks, vmi.Disk{Name: v.Name})
			shown[v.Name] = true
		}
	}
}

// disk completes a disk. read says that its volume can only be read.
func disk(d *vmi.Disk, arch string, read bool) {
	if d.Disk == nil && d.CDRom == nil && d.LUN == nil {
		d.Disk = &vmi.DiskTarget{}
	}
	if b := d.BlockSize; b != nil {
		enable(b.MatchVolume)
	}
	if t := d.Disk; t != nil && t.Bus == "" {
		t.Bus = diskBus(d, arch, read)
	}
	if t := d.LUN; t != nil && t.Bus == "" {
		// KubeVirt's default is sata or virtio, on which libvirt has no such devices.
		t.Bus = vmi.DiskBusSCSI
	}
	if t := d.CDRom; t != nil {
		cdrom(t, arch)
	}
}

// diskBus is the bus that every guest has a driver for, unless the disk
// has what only virtio can do.
func diskBus(d *vmi.Disk, arch string, read bool) vmi.DiskBus {
	thread := d.DedicatedIOThread != nil && *d.DedicatedIOThread
	if arch != AMD64 || thread || d.Disk.PciAddress != "" || d.Disk.ReadOnly || read {
		return vmi.DiskBusVirtio
	}
	return vmi.DiskBusSATA
}

// cdrom closes the drive. There is none on the virtio bus.
func cdrom(t *vmi.CDRomTarget, arch string) {
	if t.Bus == "" && arch == AMD64 {
		t.Bus = vmi.DiskBusSATA
	} else if t.Bus == "" {
		t.Bus = vmi.DiskBusSCSI
	}
	if t.ReadOnly == nil {
		t.ReadOnly = new(true)
	}
	if t.Tray == "" {
		t.Tray = vmi.TrayClosed
	}
}
