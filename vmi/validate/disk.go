package validate

import (
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
)

var serial = regexp.MustCompile(`^[A-Za-z0-9_.+-]*$`)

const maxSerial = 256

// disks checks the disks, and that each belongs to a volume and back.
func disks(at *field.Path, s *vmi.VirtualMachineInstanceSpec) field.ErrorList {
	var l field.ErrorList
	list := at.Child("domain", "devices", "disks")
	vols, seen, orders := map[string]bool{}, map[string]bool{}, map[uint]bool{}
	for _, v := range s.Volumes {
		vols[v.Name] = true
	}
	for i := range s.Domain.Devices.Disks {
		d, here := &s.Domain.Devices.Disks[i], list.Index(i)
		if seen[d.Name] {
			l = append(l, field.Duplicate(here.Child("name"), d.Name))
		}
		seen[d.Name] = true
		if !vols[d.Name] {
			l = append(l, field.Invalid(here.Child("name"), d.Name, "there is no volume of this name"))
		}
		l = append(l, disk(here, d)...)
		if o := d.BootOrder; o != nil && *o > 0 && orders[*o] {
			l = append(l, field.Duplicate(here.Child("bootOrder"), *o))
		} else if o != nil {
			orders[*o] = true
		}
	}
	for i, v := range s.Volumes {
		if !seen[v.Name] {
			l = append(l, field.Invalid(at.Child("volumes").Index(i).Child("name"), v.Name, "no disk shows this volume"))
		}
	}
	return l
}

func disk(at *field.Path, d *vmi.Disk) field.ErrorList {
	var l field.ErrorList
	if d.Disk != nil {
		switch d.Disk.Bus {
		case "", vmi.DiskBusVirtio, vmi.DiskBusSATA, vmi.DiskBusSCSI:
		default:
			l = append(l, field.NotSupported(at.Child("disk", "bus"), d.Disk.Bus, []vmi.DiskBus{vmi.DiskBusVirtio, vmi.DiskBusSATA, vmi.DiskBusSCSI}))
		}
	}
	if len(d.Serial) > maxSerial || !serial.MatchString(d.Serial) {
		l = append(l, field.Invalid(at.Child("serial"), d.Serial, "must have at most 256 of the characters A-Z a-z 0-9 _ . + -"))
	}
	if o := d.BootOrder; o != nil && *o == 0 {
		l = append(l, field.Invalid(at.Child("bootOrder"), *o, "must be more than 0"))
	}
	return l
}
