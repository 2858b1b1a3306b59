package validate

import (
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
)

// doubled is the path that KubeVirt gives some faults of a disk: it appends the
// path of the list to itself.
func doubled(list *field.Path, i int, names ...string) string {
	p := list.Child("domain", "devices", "disks").Index(i)
	for _, n := range names {
		p = p.Child(n)
	}
	return p.String()
}

// disks checks the disks, and that each shows a volume.
func disks(at *field.Path, s *vmi.VirtualMachineInstanceSpec, lim Limits) field.ErrorList {
	var l field.ErrorList
	vols, seen := map[string]*vmi.Volume{}, map[string]int{}
	for i := range s.Volumes {
		vols[s.Volumes[i].Name] = &s.Volumes[i]
	}
	for i := range s.Domain.Devices.Disks {
		d, here := &s.Domain.Devices.Disks[i], at.Index(i)
		if first, ok := seen[d.Name]; ok {
			l = append(l, field.Invalid(here.Child("name"), d.Name, fmt.Sprintf("is the name of %s too: choose another", at.Index(first))))
		} else {
			seen[d.Name] = i
		}
		for _, e := range invalid(here.Child("name"), d.Name, validation.IsDNS1123Label(d.Name)) {
			l = append(l, as(doubled(at, i, "name"), e))
		}
		l = append(l, shows(here, d, vols[d.Name], lim)...)
		l = append(l, target(at, i, d, lim.architecture(s.Architecture))...)
		l = append(l, writable(here, d, vols[d.Name], lim.architecture(s.Architecture))...)
		l = append(l, tuning(at, i, d)...)
		l = append(l, shared(here, d, vols[d.Name])...)
		if d.LUN != nil && d.Serial != "" {
			l = append(l, field.Invalid(here.Child("serial"), d.Serial, "a guest sees the serial number of a lun's device: leave it out"))
		}
		if d.LUN != nil && d.BlockSize != nil {
			l = append(l, field.Invalid(here.Child("blockSize"), field.OmitValueType{}, "a guest sees the blocks of a lun's device: leave it out"))
		}
		if d.LUN != nil && d.LUN.Reservation {
			l = append(l, reservation(at, here, lim)...)
		}
	}
	return l
}

// shows checks that a disk has a volume that it can show.
func shows(at *field.Path, d *vmi.Disk, v *vmi.Volume, lim Limits) field.ErrorList {
	switch {
	case v == nil && d.CDRom == nil:
		return field.ErrorList{field.Invalid(at.Child("name"), d.Name, "there is no volume of this name: add one to volumes, or remove the disk")}
	case v == nil && lim.Features.NoEmptyCDRom:
		return field.ErrorList{field.Invalid(at.Child("name"), d.Name,
			"there is no volume of this name, and empty drives are switched off in this cluster's configuration: add one to volumes")}
	case v != nil && d.LUN != nil && v.PersistentVolumeClaim == nil && v.DataVolume == nil:
		return field.ErrorList{field.Invalid(at.Child("lun"), d.Name, "needs a volume of the kind persistentVolumeClaim or dataVolume")}
	}
	if v == nil && d.CDRom.Bus == vmi.DiskBusUSB {
		return field.ErrorList{field.Invalid(at.Child("cdrom", "bus"), d.CDRom.Bus, "must be sata or scsi for a drive without a volume: on the bus usb a drive is never empty")}
	}
	return nil
}

// shared checks that other guests can write to a disk that is shareable.
func shared(at *field.Path, d *vmi.Disk, v *vmi.Volume) field.ErrorList {
	var l field.ErrorList
	if d.IO == vmi.DiskIONative && d.Cache != "" && d.Cache != vmi.DiskCacheNone {
		l = append(l, field.Invalid(at.Child("io"), d.IO, "works with cache none only: leave io out, or choose threads"))
	}
	if d.Shareable == nil || !*d.Shareable {
		return l
	}
	if d.Cache != "" && d.Cache != vmi.DiskCacheNone {
		l = append(l, field.Invalid(at.Child("cache"), d.Cache, "must be none, or left out, for a disk that is shareable: with a cache a guest does not see what another one writes"))
	}
	if v != nil && (v.ContainerDisk != nil || v.Ephemeral != nil || v.EmptyDisk != nil) {
		l = append(l, field.Invalid(at.Child("shareable"), true, "needs a volume that outlasts its VMI, "+
			"such as persistentVolumeClaim: what a guest writes to "+v.Kinds()[0]+" is its own. Leave it out"))
	}
	return l
}

// writable checks that a disk of a claim that is only read is on a bus where disks can
// be read-only.
func writable(at *field.Path, d *vmi.Disk, v *vmi.Volume, arch string) field.ErrorList {
	target, b := busOf(d)
	if v == nil || v.PersistentVolumeClaim == nil || !v.PersistentVolumeClaim.ReadOnly || target != "disk" {
		return nil
	}
	if b == vmi.DiskBusSATA {
		return field.ErrorList{field.Invalid(at.Child("disk", "bus"), b,
			"must be virtio or scsi for a volume with persistentVolumeClaim.readOnly: disks on the bus sata cannot be read-only")}
	}
	return nil
}

func reservation(list, at *field.Path, lim Limits) field.ErrorList {
	var l field.ErrorList
	if !lim.Features.PersistentReservation {
		l = append(l, as(list.Child("luns", "reservation").String(),
			field.Invalid(at.Child("lun", "reservation"), true, "reservations are switched off in this cluster's configuration: leave it out")))
	}
	return l
}

// target checks what a disk is to the guest.
func target(list *field.Path, i int, d *vmi.Disk, arch string) field.ErrorList {
	var l field.ErrorList
	at := list.Index(i)
	if n := count(d.Disk != nil, d.CDRom != nil, d.LUN != nil); n > 1 {
		l = append(l, field.Invalid(at, d.Name, "must be one of disk, cdrom and lun: leave the others out"))
	}
	name, b := busOf(d)
	l = append(l, bus(at.Child(name, "bus"), d, name, b, arch)...)
	if t := d.DedicatedIOThread; t != nil && *t && b != "" && b != vmi.DiskBusVirtio {
		l = append(l, as(doubled(list, i), field.NotSupported(at.Child(name, "bus"), b, []vmi.DiskBus{vmi.DiskBusVirtio})))
	}
	if d.Disk == nil || d.Disk.PciAddress == "" {
		return l
	}
	pci := at.Child("disk", "pciAddress")
	name = list.Child("domain", "devices", "disks", "disk").Index(i).Child("pciAddress").String()
	if b != vmi.DiskBusVirtio {
		l = append(l, as(name, field.Invalid(pci, d.Disk.PciAddress, "needs the bus virtio: other disks are not on the PCI bus themselves")))
	}
	if !pciAddress.MatchString(d.Disk.PciAddress) {
		l = append(l, as(name, field.Invalid(pci, d.Disk.PciAddress, pciForm)))
	}
	return l
}

var pciAddress = regexp.MustCompile(`^[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-1][0-9a-fA-F]\.[0-7]$`)

const pciForm = "must be a PCI address, such as 0000:81:01.0"

func busOf(d *vmi.Disk) (string, vmi.DiskBus) {
	switch {
	case d.Disk != nil:
		return "disk", d.Disk.Bus
	case d.LUN != nil:
		return "lun", d.LUN.Bus
	case d.CDRom != nil:
		return "cdrom", d.CDRom.Bus
	}
	return "disk", ""
}

func bus(at *field.Path, d *vmi.Disk, target string, b vmi.DiskBus, arch string) field.ErrorList {
	if b == "" {
		return nil
	}
	l := oneOf(at, b, vmi.DiskBusVirtio, vmi.DiskBusSATA, vmi.DiskBusSCSI, vmi.DiskBusUSB)
	if target == "lun" && len(l) == 0 && b != vmi.DiskBusSCSI {
		return append(l, field.Invalid(at, b, "must be scsi: luns on other buses take no SCSI commands"))
	}
	if b == vmi.DiskBusVirtio && target == "cdrom" {
		l = append(l, field.Invalid(at, b, "must be sata, scsi or usb: there are no CD-ROM drives on the virtio bus"))
	}
	if b == vmi.DiskBusSATA && d.Disk != nil && d.Disk.ReadOnly {
		l = append(l, field.Invalid(at, b, "must be virtio, scsi or usb for a disk that is read only"))
	}
	if arch == defaults.ARM64 && b != vmi.DiskBusVirtio && b != vmi.DiskBusSCSI {
		l = append(l, field.NotSupported(at, b, []vmi.DiskBus{vmi.DiskBusVirtio, vmi.DiskBusSCSI}))
	}
	return l
}

// tuning checks how a disk reads and writes.
func tuning(list *field.Path, i int, d *vmi.Disk) field.ErrorList {
	at := list.Index(i)
	l := serialNumber(at.Child("serial"), d.Serial)
	l = append(l, oneOf(at.Child("cache"), d.Cache, vmi.DiskCacheNone, vmi.DiskCacheWriteThrough, vmi.DiskCacheWriteBack)...)
	modes := []vmi.DiskIO{vmi.DiskIONative, vmi.DiskIOThreads}
	if len(oneOf(at, d.IO, modes...)) > 0 {
		l = append(l, as(doubled(list, i, "io"), field.NotSupported(at.Child("io"), d.IO, modes)))
	}
	if p := d.ErrorPolicy; p != nil {
		l = append(l, exactlyOneOf(at.Child("errorPolicy"), *p, vmi.DiskErrorPolicyStop, vmi.DiskErrorPolicyIgnore, vmi.DiskErrorPolicyReport, vmi.DiskErrorPolicyENOSPACE)...)
	}
	if d.CDRom != nil {
		l = append(l, oneOf(at.Child("cdrom", "tray"), d.CDRom.Tray, vmi.TrayOpen, vmi.TrayClosed)...)
	}
	if b := d.BlockSize; b != nil && b.Custom != nil {
		_, on := busOf(d)
		l = append(l, blockSize(at.Child("blockSize"), b, on)...)
	}
	return l
}
