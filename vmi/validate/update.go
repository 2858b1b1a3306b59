package validate

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/internal/vmi/quantity"
	"github.com/podvisor/podvisor/vmi"
)

// equal compares as the API does: quantities by what they say, nil as empty. It does
// not compare quantities that are out of bounds, which could take minutes.
func equal(a, b any) bool {
	return len(quantity.Faults(nil, a)) == 0 && len(quantity.Faults(nil, b)) == 0 && equality.Semantic.DeepEqual(a, b)
}

// VirtualMachineUpdate returns why the user may not change a VirtualMachine so,
// or nothing. Both are complete. A change of when it runs is not judged by the rest,
// which the cluster may not allow any more: it must stay possible to stop the VM.
func VirtualMachineUpdate(old, v *vmi.VirtualMachine, by User, lim Limits) field.ErrorList {
	at := field.NewPath("spec")
	var l field.ErrorList
	if v.DeletionTimestamp == nil && SameButStrategy(old, v) {
		l = strategy(at, &v.Spec, lim)
	} else {
		l = virtualMachine(v, by, lim)
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

// SameButStrategy says that nothing differs but when the VM runs.
func SameButStrategy(old, v *vmi.VirtualMachine) bool {
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
