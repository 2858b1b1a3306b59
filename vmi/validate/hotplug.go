package validate

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
)

// requestsName is the name by which KubeVirt reports requests for volumes.
const requestsName = "Status.volumeRequests"

// volumeRequests checks the volumes that are to be added to the VM or
// removed from it.
func volumeRequests(v *vmi.VirtualMachine) field.ErrorList {
	var l field.ErrorList
	at := field.NewPath("status", "volumeRequests")
	have := volumesByName(v.Spec.Template.Spec.Volumes)
	added, removed := map[string]bool{}, map[string]bool{}
	fault := func(here *field.Path, value, message string) {
		l = append(l, as(requestsName, field.Invalid(here, value, message)))
	}
	for i := range v.Status.VolumeRequests {
		r, here := &v.Status.VolumeRequests[i], at.Index(i)
		add, remove := r.AddVolumeOptions, r.RemoveVolumeOptions
		switch {
		case (add == nil) == (remove == nil):
			fault(here, plural(count(add != nil, remove != nil), "option"), "must be exactly one of addVolumeOptions and removeVolumeOptions")
		case add != nil && added[add.Name]:
			fault(here, add.Name, "is to be added already: ask for it once")
		case remove != nil && removed[remove.Name]:
			fault(here, remove.Name, "is to be removed already: ask for it once")
		case remove != nil:
			removed[remove.Name] = true
		default:
			added[add.Name] = true
			for _, m := range addition(add, have) {
				fault(here, add.Name, m)
			}
		}
	}
	return l
}

// requested are the faults that the template would have with the volumes that
// are asked for.
func requested(v *vmi.VirtualMachine, lim Limits) field.ErrorList {
	if len(v.Status.VolumeRequests) == 0 {
		return nil
	}
	return after(field.NewPath("spec", "template", "spec"), templateSpec(v.Spec.Template, lim), v.Status.VolumeRequests, lim)
}

// after are the faults that the disks of a spec have once it is changed as is
// asked for.
func after(at *field.Path, s *vmi.VirtualMachineInstanceSpec, all []vmi.VolumeRequest, lim Limits) field.ErrorList {
	request(s, all)
	l := volumes(at.Child("volumes"), s, lim)
	l = append(l, disks(at.Child("domain", "devices", "disks"), s, lim)...)
	l = append(l, bootOrders(at, &s.Domain.Devices)...)
	for _, e := range l {
		e.Detail = "with the volumes of status.volumeRequests: " + e.Detail
	}
	return l
}

// VolumeRequests returns why the VMI that runs cannot have the volumes added
// and removed that its VirtualMachine asks for, or nothing. [VirtualMachine]
// checks the requests by themselves and with the template. The running VMI
// may be nil: there is none. Faults in its spec are fields of the VMI.
func VolumeRequests(v *vmi.VirtualMachine, running *vmi.VirtualMachineInstance, lim Limits) field.ErrorList {
	if len(v.Status.VolumeRequests) == 0 || running == nil || running.DeletionTimestamp != nil {
		return nil
	}
	var l field.ErrorList
	have := volumesByName(running.Spec.Volumes)
	for i, r := range v.Status.VolumeRequests {
		if r.AddVolumeOptions == nil {
			continue
		}
		if k, ok := have[r.AddVolumeOptions.Name]; ok && !sameVolume(k, volumeOf(r.AddVolumeOptions)) {
			here := field.NewPath("status", "volumeRequests").Index(i)
			l = append(l, as(requestsName, field.Invalid(here, k.Name, "the running VMI has another volume of this name: choose another name, or remove that volume first")))
		}
	}
	if m := running.Status.MigrationState; m != nil && !m.Completed && m.EndTimestamp == nil {
		l = append(l, later(field.NewPath("spec"), "volumes cannot be added or removed before the migration of the running VMI has ended"))
	}
	if len(l) > 0 {
		return l
	}
	return after(field.NewPath("spec"), running.Spec.DeepCopy(), v.Status.VolumeRequests, lim)
}

// request changes a spec as is asked for. A volume that is there already is.
func request(s *vmi.VirtualMachineInstanceSpec, all []vmi.VolumeRequest) {
	for i := range all {
		add, remove := all[i].AddVolumeOptions, all[i].RemoveVolumeOptions
		switch {
		case remove != nil:
			s.Volumes = slices.DeleteFunc(s.Volumes, func(v vmi.Volume) bool { return v.Name == remove.Name })
			s.Domain.Devices.Disks = slices.DeleteFunc(s.Domain.Devices.Disks, func(d vmi.Disk) bool { return d.Name == remove.Name })
		case add != nil && !slices.ContainsFunc(s.Volumes, func(v vmi.Volume) bool { return v.Name == add.Name }):
			s.Volumes = append(s.Volumes, volumeOf(add))
			if add.Disk != nil {
				d := add.Disk.DeepCopy()
				d.Name = add.Name
				s.Domain.Devices.Disks = append(s.Domain.Devices.Disks, *d)
			}
		}
	}
}

// volumeOf is the volume that is to be added.
func volumeOf(add *vmi.AddVolumeOptions) vmi.Volume {
	v := vmi.Volume{Name: add.Name}
	if s := add.VolumeSource; s != nil {
		v.PersistentVolumeClaim, v.DataVolume = s.PersistentVolumeClaim, s.DataVolume
	}
	return v
}

// sameVolume compares what volumes hold. That a volume was added later is no
// difference: it becomes true of a request when it is met.
func sameVolume(a, b vmi.Volume) bool {
	return equal(madeWith(a), madeWith(b))
}

func madeWith(v vmi.Volume) *vmi.Volume {
	c := v.DeepCopy()
	if c.PersistentVolumeClaim != nil {
		c.PersistentVolumeClaim.Hotpluggable = false
	}
	if c.DataVolume != nil {
		c.DataVolume.Hotpluggable = false
	}
	return c
}

func volumesByName(all []vmi.Volume) map[string]vmi.Volume {
	out := map[string]vmi.Volume{}
	for _, v := range all {
		out[v.Name] = v
	}
	return out
}

// addition says what is wrong with a volume that is to be added.
func addition(add *vmi.AddVolumeOptions, have map[string]vmi.Volume) []string {
	out := hotplugDisk(add.Disk)
	v := volumeOf(add)
	if count(v.PersistentVolumeClaim != nil, v.DataVolume != nil) != 1 {
		out = append(out, "volumeSource must be exactly one of persistentVolumeClaim and dataVolume")
	}
	if old, ok := have[add.Name]; ok && !sameVolume(old, v) {
		out = append(out, "the template has another volume of this name: choose another name")
	}
	return out
}

// hotplugDisk says why a disk cannot be added to a running VMI.
func hotplugDisk(d *vmi.Disk) []string {
	if d == nil {
		return []string{"disk must say how the guest sees the volume, such as disk: {bus: scsi}"}
	}
	thread := d.DedicatedIOThread != nil && *d.DedicatedIOThread
	switch _, bus := busOf(d); {
	case d.Disk == nil && d.LUN == nil:
		return []string{"disk must be one of disk and lun: a drive cannot be added to a running VMI"}
	case d.LUN != nil && bus != vmi.DiskBusSCSI:
		return []string{"disk.lun.bus must be scsi, not " + quote(string(bus))}
	case d.Disk != nil && bus != vmi.DiskBusSCSI && bus != vmi.DiskBusVirtio:
		return []string{"disk.disk.bus must be scsi or virtio, not " + quote(string(bus))}
	case thread && bus != vmi.DiskBusVirtio:
		return []string{"disk.dedicatedIOThread needs the bus virtio, not " + quote(string(bus))}
	}
	return nil
}
