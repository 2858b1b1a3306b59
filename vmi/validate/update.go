package validate

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/quantity"
)

// equal compares as the API does: quantities by what they say, nil as empty. It does
// not compare quantities that are out of bounds, which could take minutes.
func equal(a, b any) bool {
	return len(quantity.Faults(nil, a)) == 0 && len(quantity.Faults(nil, b)) == 0 && equality.Semantic.DeepEqual(a, b)
}

// InstanceUpdate returns why the user may not change a VMI so, or nothing.
// A VMI is as it was made, except for what Podvisor adds to it and removes
// from it while it runs.
func InstanceUpdate(old, v *vmi.VirtualMachineInstance, by User, lim Limits) field.ErrorList {
	var l field.ErrorList
	if by.Kind == Handler {
		l = append(l, ownNode(old, v, by)...)
	}
	changed := !equal(old.Spec, v.Spec)
	switch {
	case changed && !by.ours():
		l = append(l, whole(field.ErrorTypeNotSupported, "a VMI's spec must not change: change the VirtualMachine that makes it, or make another VMI"))
	case changed:
		l = append(l, liveUpdate(old, v, lim)...)
	}
	if !by.ours() {
		l = append(l, labelsKept(old, v)...)
	}
	return l
}

// ownNode keeps a handler to the VMIs of its node.
func ownNode(old, v *vmi.VirtualMachineInstance, by User) field.ErrorList {
	var l field.ErrorList
	target := targetNode(old)
	switch {
	case by.Node == "":
		l = append(l, whole(field.ErrorTypeInvalid, "the handler does not say of which node it is: its token must be bound to its pod"))
	case by.Node != old.Status.NodeName && by.Node != target:
		l = append(l, whole(field.ErrorTypeInvalid, "the handler of "+quote(by.Node)+" may not change a VMI of "+quote(old.Status.NodeName)))
	}
	if targetNode(v) != target {
		l = append(l, whole(field.ErrorTypeInvalid, "a handler may not choose status.migrationState.targetNode"))
	}
	return l
}

func targetNode(v *vmi.VirtualMachineInstance) string {
	if m := v.Status.MigrationState; m != nil {
		return m.TargetNode
	}
	return ""
}

// liveUpdate checks a change of a running VMI.
func liveUpdate(old, v *vmi.VirtualMachineInstance, lim Limits) field.ErrorList {
	var l field.ErrorList
	if maxSockets(old) != maxSockets(v) {
		l = append(l, whole(field.ErrorTypeInvalid, "spec.domain.cpu.maxSockets must not change while the VMI runs"))
	}
	if o, n := old.Spec.Domain.Memory, v.Spec.Domain.Memory; o != nil && n != nil && o.MaxGuest != nil && n.MaxGuest != nil && !equal(o.MaxGuest, n.MaxGuest) {
		l = append(l, whole(field.ErrorTypeInvalid, "spec.domain.memory.maxGuest must not change while the VMI runs"))
	}
	l = append(l, storageKept(old, v)...)
	return append(l, Spec(field.NewPath("spec"), &v.Spec, lim)...)
}

func maxSockets(v *vmi.VirtualMachineInstance) uint32 {
	if c := v.Spec.Domain.CPU; c != nil {
		return c.MaxSockets
	}
	return 0
}

// storageKept checks that the volumes that the VMI was made with are still
// there, and that new ones are of a kind that can be added. A volume that moves
// to another claim changes, and a drive that was empty may get a volume.
func storageKept(old, v *vmi.VirtualMachineInstance) field.ErrorList {
	var l field.ErrorList
	fault := func(message string) { l = append(l, whole(field.ErrorTypeInvalid, message)) }
	was, is := storage(&old.Spec), storage(&v.Spec)
	added := map[string]bool{}
	for _, s := range old.Status.VolumeStatus {
		added[s.Name] = s.HotplugVolume != nil
	}
	moves, drives := map[string]bool{}, map[string]bool{}
	for _, m := range v.Status.MigratedVolumes {
		moves[m.VolumeName] = true
	}
	for _, d := range old.Spec.Domain.Devices.Disks {
		drives[d.Name] = true
	}
	for _, k := range old.Spec.Volumes {
		n, ok := is[k.Name]
		switch {
		case !ok && added[k.Name], ok && moves[k.Name]:
		case !ok:
			fault("the volume " + k.Name + " must not be removed: the VMI was made with it")
		case !equal(was[k.Name].volume, n.volume) || !equal(was[k.Name].disk, n.disk):
			fault("the volume " + k.Name + " and its disk must not change while the VMI runs")
		}
	}
	for _, k := range v.Spec.Volumes {
		if _, ok := was[k.Name]; ok {
			continue
		}
		if k.PersistentVolumeClaim == nil && k.DataVolume == nil {
			fault("the volume " + k.Name + " must be a persistentVolumeClaim or a dataVolume to be added")
		}
		if drives[k.Name] {
			continue
		}
		for _, m := range hotplugDisk(is[k.Name].disk) {
			fault("the volume " + k.Name + " cannot be added: " + m)
		}
	}
	return l
}

// stored is a volume with the disk that shows it.
type stored struct {
	volume *vmi.Volume
	disk   *vmi.Disk
}

func storage(s *vmi.VirtualMachineInstanceSpec) map[string]stored {
	out := map[string]stored{}
	for i := range s.Volumes {
		out[s.Volumes[i].Name] = stored{volume: &s.Volumes[i]}
	}
	for i := range s.Domain.Devices.Disks {
		d := &s.Domain.Devices.Disks[i]
		if k, ok := out[d.Name]; ok {
			out[d.Name] = stored{k.volume, d}
		}
	}
	return out
}

// labelsKept checks that users do not change the labels that Podvisor writes.
func labelsKept(old, v *vmi.VirtualMachineInstance) field.ErrorList {
	var changed []string
	for _, k := range reserved {
		a, had := old.Labels[k]
		b, has := v.Labels[k]
		if had != has || a != b {
			changed = append(changed, k)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	return field.ErrorList{notYours(nil, changed)}
}

// VirtualMachineUpdate returns why the user may not change a VirtualMachine so,
// or nothing. Both are complete. A change of when it runs is not judged by the rest,
// which the cluster may not allow any more: it must stay possible to stop the VM.
func VirtualMachineUpdate(old, v *vmi.VirtualMachine, by User, lim Limits) field.ErrorList {
	at := field.NewPath("spec")
	var l field.ErrorList
	if v.DeletionTimestamp == nil && sameButStrategy(old, v) {
		l = strategy(at, &v.Spec, lim)
	} else {
		l = VirtualMachine(v, by, lim)
	}
	if name := v.Status.SnapshotInProgress; name != nil {
		if !equal(volumesOf(old), volumesOf(v)) {
			l = append(l, later(at, "volumes must not change before the snapshot "+quote(*name)+" is complete"))
		}
		if old.Spec.Strategy() != v.Spec.Strategy() {
			l = append(l, later(at, "running and runStrategy must not change before the snapshot "+quote(*name)+" is complete"))
		}
	}
	if name := v.Status.RestoreInProgress; name != nil && old.Spec.Strategy() != v.Spec.Strategy() {
		l = append(l, later(at, "running and runStrategy must not change before "+quote(*name)+" is restored"))
	}
	return l
}

// sameButStrategy says that nothing differs but when the VM runs.
func sameButStrategy(old, v *vmi.VirtualMachine) bool {
	a, b := old.Spec, v.Spec
	a.RunStrategy, a.Running, b.RunStrategy, b.Running = nil, nil, nil, nil
	return equal(a, b) && equal(old.Status.VolumeRequests, v.Status.VolumeRequests)
}

// later refuses a change of the spec for now.
func later(at *field.Path, message string) *field.Error {
	e := whole(field.ErrorTypeNotSupported, message)
	e.Field = at.String()
	return e
}

func volumesOf(v *vmi.VirtualMachine) []vmi.Volume {
	if v.Spec.Template == nil {
		return nil
	}
	return v.Spec.Template.Spec.Volumes
}
