package domain

import (
	"fmt"

	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/vmi"
)

// filesystemQueue is how many parts of requests a queue of a file system has, as in
// KubeVirt.
const filesystemQueue = 1024

// filesystemSlot is the slot of the file systems, one in each function.
const filesystemSlot = 0x0a

// filesystemPart are the file systems.
//
// +podvisor:entry
var filesystemPart = Part{
	Name: "filesystem", Build: filesystems,
	Devices: func(l *libvirtxml.DomainDeviceList) []Device {
		return devicesOf(l.Filesystems, func(n int, f *libvirtxml.DomainFilesystem) Device {
			return Device{
				Name: fmt.Sprintf("file system %d", n), Address: &f.Address, At: OnRoot(filesystemSlot, n),
				Virtio: &Virtio{Share: func() { f.Driver.IOMMU = switchedOn }},
			}
		})
	},
}

// filesystems adds the volumes that the guest mounts as file systems. Their servers see
// the guest's memory, so it is made of a file that QEMU shares with them.
func filesystems(b *Draft) error {
	for _, f := range b.Spec.Devices.Filesystems {
		b.Domain.Devices.Filesystems = append(b.Domain.Devices.Filesystems, libvirtxml.DomainFilesystem{
			Driver: &libvirtxml.DomainFilesystemDriver{Type: "virtiofs", Queue: filesystemQueue},
			Source: &libvirtxml.DomainFilesystemSource{Mount: &libvirtxml.DomainFilesystemSourceMount{Socket: vmi.FilesystemSocket(f.Name)}},
			Target: &libvirtxml.DomainFilesystemTarget{Dir: f.Name},
			Alias:  deviceAlias("fs", f.Name),
		})
	}
	if len(b.Domain.Devices.Filesystems) > 0 {
		m := memoryBacking(b)
		m.MemoryAccess = &libvirtxml.DomainMemoryAccess{Mode: "shared"}
		m.MemorySource = &libvirtxml.DomainMemorySource{Type: "memfd"}
	}
	return nil
}
