package validate

import (
	"reflect"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
)

// requestsName is the name by which KubeVirt reports requests for volumes.
const requestsName = "Status.volumeRequests"

// volumeRequests checks the volumes that shall be added to the machine or
// removed from it.
func volumeRequests(v *vmi.VirtualMachine) field.ErrorList {
	var l field.ErrorList
	at := field.NewPath("status", "volumeRequests")
	have := map[string]vmi.Volume{}
	for _, k := range v.Spec.Template.Spec.Volumes {
		have[k.Name] = k
	}
	added, removed := map[string]bool{}, map[string]bool{}
	fault := func(here *field.Path, value, message string) {
		l = append(l, as(requestsName, field.Invalid(here, value, message)))
	}
	for i := range v.Status.VolumeRequests {
		r, here := &v.Status.VolumeRequests[i], at.Index(i)
		add, remove := r.AddVolumeOptions, r.RemoveVolumeOptions
		switch {
		case (add == nil) == (remove == nil):
			fault(here, "", "must be exactly one of addVolumeOptions and removeVolumeOptions")
		case add != nil && added[add.Name]:
			fault(here, add.Name, "is to be added already")
		case remove != nil && removed[remove.Name]:
			fault(here, remove.Name, "is to be removed already")
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

// addition says what is wrong with a volume that shall be added.
func addition(add *vmi.AddVolumeOptions, have map[string]vmi.Volume) []string {
	out := hotplugDisk(add.Disk)
	source := vmi.VolumeSource{}
	if s := add.VolumeSource; s != nil {
		source.PersistentVolumeClaim, source.DataVolume = s.PersistentVolumeClaim, s.DataVolume
	}
	if count(source.PersistentVolumeClaim != nil, source.DataVolume != nil) != 1 {
		out = append(out, "volumeSource must be exactly one of persistentVolumeClaim and dataVolume")
	}
	if old, ok := have[add.Name]; ok && !reflect.DeepEqual(old, vmi.Volume{Name: add.Name, VolumeSource: source}) {
		out = append(out, "the template has another volume of this name")
	}
	return out
}

// hotplugDisk says why a disk cannot be added to a running machine.
func hotplugDisk(d *vmi.Disk) []string {
	if d == nil {
		return []string{"disk must be set"}
	}
	thread := d.DedicatedIOThread != nil && *d.DedicatedIOThread
	switch _, bus := busOf(d); {
	case d.Disk == nil && d.LUN == nil:
		return []string{"disk must be one of disk and lun: a drive cannot be added to a running machine"}
	case d.LUN != nil && bus != vmi.DiskBusSCSI:
		return []string{"disk.lun.bus must be scsi, not " + quote(string(bus))}
	case d.Disk != nil && bus != vmi.DiskBusSCSI && bus != vmi.DiskBusVirtio:
		return []string{"disk.disk.bus must be scsi or virtio, not " + quote(string(bus))}
	case thread && bus != vmi.DiskBusVirtio:
		return []string{"disk.dedicatedIOThread needs the bus virtio, not " + quote(string(bus))}
	}
	return nil
}
