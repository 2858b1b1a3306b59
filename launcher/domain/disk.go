package domain

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/vmi"
)

// diskPart are the disks.
//
// +podvisor:entry
var diskPart = Part{
	Name: "disks", Build: disks,
	Devices: func(l *libvirtxml.DomainDeviceList) []Device {
		return devicesOf(l.Disks, func(_ int, d *libvirtxml.DomainDisk) Device {
			if d.Target.Bus != string(vmi.DiskBusVirtio) {
				return Device{}
			}
			return Device{
				Name: "disk " + strings.TrimPrefix(d.Alias.Name, aliasPrefix), Address: &d.Address,
				Virtio: &Virtio{Model: &d.Model, Share: func() { d.Driver.IOMMU = switchedOn }},
			}
		})
	},
	NeedsUSB: func(b *Draft) bool { return b.hasDiskOn(vmi.DiskBusUSB) },
}

// disks adds the disks of the spec, with the I/O threads that serve them.
func disks(b *Draft) error {
	var faults []error
	specs := b.Spec.Devices.Disks
	places, threads := b.diskPlaces(), diskThreads(b.Spec)
	for i, d := range specs {
		at := devicesPath.Child("disks").Index(i)
		from, ok := b.Host.Disks[d.Name]
		if !ok && !b.isEmpty(d) {
			faults = append(faults, fmt.Errorf("%s: disk %s has no attachment", at, d.Name))
			continue
		}
		if bad := diskFaults(d, from); len(bad) > 0 {
			for _, f := range bad {
				faults = append(faults, fmt.Errorf("%s: disk %s %s: %w", at, d.Name, f, vmi.ErrInvalid))
			}
			continue
		}
		alias := DiskAlias(d.Name)
		b.Domain.Devices.Disks = append(b.Domain.Devices.Disks, disk(d, from, places[alias], b.queues(threads[alias])))
		b.override(alias, discardGranularity(d, from))
	}
	setIOThreads(b.Domain, threads)
	return errors.Join(faults...)
}

// lanes are by what the requests of a disk reach QEMU.
type lanes struct {
	// thread is the I/O thread that serves the disk. 0: QEMU's main thread does.
	thread uint
	// queues is the number of queues of a disk on the bus virtio. 0: QEMU decides.
	queues uint
}

// queues are the lanes of a disk that the I/O thread serves.
func (b *Draft) queues(thread uint) lanes {
	l := lanes{thread: thread}
	if isOn(b.Spec.Devices.BlockMultiQueue, false) {
		l.queues = uint(b.Spec.CPU.VCPUs())
	}
	return l
}

// disk is one disk, as it is there at boot and as it is attached to a guest that
// runs. The zero value of from is an empty drive.
func disk(d vmi.Disk, from Disk, at Place, by lanes) libvirtxml.DomainDisk {
	out := libvirtxml.DomainDisk{
		Device: "disk",
		Driver: &libvirtxml.DomainDiskDriver{Name: "qemu", ErrorPolicy: errorPolicy(d)},
		Target: &libvirtxml.DomainDiskTarget{Dev: at.Target, Bus: string(bus(d))},
		Serial: d.Serial,
		Alias:  &libvirtxml.DomainAlias{Name: DiskAlias(d.Name)},
	}
	if from.Path != "" {
		out.Driver.Type, out.Driver.Cache, out.Driver.IO = string(from.Format), cache(d, from), inputOutput(d, from)
		out.Driver.Discard = discard(from)
		out.Source, out.BackingStore = diskSource(from.Path, from.Device), backing(from)
		out.BlockIO = blockIO(d, from)
	}
	if readOnly(d, from) {
		out.ReadOnly = &libvirtxml.DomainDiskReadOnly{}
	}
	if shareable(d) {
		out.Shareable = &libvirtxml.DomainDiskShareable{}
	}
	if d.BootOrder != nil {
		out.Boot = &libvirtxml.DomainDeviceBoot{Order: *d.BootOrder}
	}
	switch {
	case d.CDRom != nil:
		cdrom(&out, *d.CDRom)
	case d.LUN != nil:
		lun(&out)
	}
	switch bus(d) {
	case vmi.DiskBusVirtio:
		onVirtio(&out, at, by)
	case vmi.DiskBusSCSI:
		out.Address = &libvirtxml.DomainAddress{Drive: &libvirtxml.DomainAddressDrive{
			Controller: new(uint(0)), Bus: new(uint(0)), Target: new(uint(0)), Unit: at.Unit,
		}}
	}
	return out
}

// onVirtio makes the disk a PCI device of its own.
func onVirtio(out *libvirtxml.DomainDisk, at Place, by lanes) {
	out.Model = nonTransitional
	out.Address = pciAddress(at.PCI)
	if by.thread != 0 {
		out.Driver.IOThread = &by.thread
	}
	if by.queues != 0 {
		out.Driver.Queues = &by.queues
	}
}

// diskFaults are what of a disk QEMU or libvirt cannot do with what it is in, each as
// the end of a sentence that begins with the disk.
func diskFaults(d vmi.Disk, from Disk) []string {
	var faults []string
	if d.CDRom == nil && from.Path != "" && readOnly(d, from) && bus(d) == vmi.DiskBusSATA {
		faults = append(faults, "is read-only, which disks on the bus sata cannot be: use virtio or scsi")
	}
	if d.CDRom != nil {
		faults = append(faults, cdromFaults(d, from)...)
	}
	if d.LUN != nil {
		faults = append(faults, lunFaults(d, from)...)
	}
	if from.Path == "" {
		return faults
	}
	if d.Cache == vmi.DiskCacheNone && !from.DirectIO {
		faults = append(faults, fmt.Sprintf("asks for cache none, and its volume, %s, cannot be opened past the page cache: "+
			"leave cache out, or choose writethrough or writeback", from.Path))
	}
	if d.IO == vmi.DiskIONative && cache(d, from) != string(vmi.DiskCacheNone) {
		faults = append(faults, "asks for io native, which works with cache none only: leave io out, or choose threads")
	}
	if shareable(d) {
		faults = append(faults, shareFaults(d, from)...)
	}
	if b := blockIO(d, from); b != nil && bus(d) == vmi.DiskBusSATA && b.LogicalBlockSize != sector {
		faults = append(faults, fmt.Sprintf("has logical blocks of %d bytes, and on the bus sata they have %d: use virtio or scsi", b.LogicalBlockSize, sector))
	}
	if g := discardGranularity(d, from); bus(d) == vmi.DiskBusSATA && g != 0 && g != sector {
		faults = append(faults, fmt.Sprintf("has a discardGranularity of %d bytes, and on the bus sata it is %d: use virtio or scsi", g, sector))
	}
	return faults
}

// shareFaults are why other guests cannot write to the disk at the same time.
func shareFaults(d vmi.Disk, from Disk) []string {
	var faults []string
	if from.Format != storage.Raw {
		faults = append(faults, fmt.Sprintf("is shareable, and its volume is in format %s, which has one writer: use a claim, or leave shareable out", from.Format))
	}
	if cache(d, from) != string(vmi.DiskCacheNone) {
		faults = append(faults, "is shareable, which needs cache none: with a cache a guest does not see what another one writes. Use a volume that can do that, or leave shareable out")
	}
	return faults
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

// cache is what the spec asks for. Without that the page cache is bypassed where that
// is possible: the guest has a cache of its own, and that of the node is not the pod's
// to fill.
func cache(d vmi.Disk, from Disk) string {
	switch {
	case d.Cache != "":
		return string(d.Cache)
	case from.DirectIO:
		return string(vmi.DiskCacheNone)
	}
	return string(vmi.DiskCacheWriteThrough)
}

// inputOutput is what the spec asks for. Without that it is the kernel's asynchronous
// I/O for devices. On files that grow it blocks QEMU, so there QEMU's threads, its
// default, are used. io_uring is refused by the pod's seccomp profile.
func inputOutput(d vmi.Disk, from Disk) string {
	switch {
	case d.IO != "":
		return string(d.IO)
	case from.Device && cache(d, from) == string(vmi.DiskCacheNone):
		return string(vmi.DiskIONative)
	}
	return ""
}

// discard gives back what the guest discards, unless all space of the disk is taken
// beforehand so that it is there.
func discard(from Disk) string {
	if from.Preallocated {
		return "ignore"
	}
	return "unmap"
}

// errorPolicy is what happens when the volume fails. libvirt makes of enospace that a
// read that fails is reported.
func errorPolicy(d vmi.Disk) string {
	if d.ErrorPolicy != nil {
		return string(*d.ErrorPolicy)
	}
	return string(vmi.DiskErrorPolicyStop)
}

func shareable(d vmi.Disk) bool { return isOn(d.Shareable, false) }

// readOnly says that the guest cannot write: to a drive never, to a disk if the spec
// or the volume says so.
func readOnly(d vmi.Disk, from Disk) bool {
	switch {
	case d.CDRom != nil:
		return true
	case d.LUN != nil:
		return d.LUN.ReadOnly || from.ReadOnly
	}
	return d.Disk != nil && d.Disk.ReadOnly || from.ReadOnly
}

// bus is the bus that the disk is attached to.
func bus(d vmi.Disk) vmi.DiskBus {
	switch {
	case d.CDRom != nil && d.CDRom.Bus != "":
		return d.CDRom.Bus
	case d.LUN != nil && d.LUN.Bus != "":
		return d.LUN.Bus
	case d.Disk != nil && d.Disk.Bus != "":
		return d.Disk.Bus
	}
	return vmi.DiskBusSATA
}

// devicesPath is where the devices are in the VMI.
var devicesPath = field.NewPath("spec", "domain", "devices")
