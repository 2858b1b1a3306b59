package kinds

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/instancetype"
	"github.com/podvisor/podvisor/vmi/validate"
)

// sized is the row of VMs, which are judged as what they become by their instance type and
// their preference. Of one that is not known, nothing is judged.
func sized(k Kind) Kind {
	complete, faults, update := k.Complete, k.Faults, k.Update
	k.Complete = func(o vmi.Object, c Cluster) vmi.Object {
		return complete(instancetype.Complete(o.(*vmi.VirtualMachine), c.Preference), c)
	}
	k.Faults = func(o vmi.Object, c Cluster) field.ErrorList {
		v := o.(*vmi.VirtualMachine)
		l := validate.References(v)
		if v.DeletionTimestamp != nil || len(l) > 0 {
			return append(l, faults(v, c)...)
		}
		is, l := become(v, c)
		return append(l, faults(is, c)...)
	}
	k.Create = k.Faults
	k.Update = func(old, o vmi.Object, c Cluster) field.ErrorList {
		was, v := old.(*vmi.VirtualMachine), o.(*vmi.VirtualMachine)
		if v.DeletionTimestamp != nil || validate.SameButStrategy(was, v) {
			return update(was, v, c)
		}
		l := validate.ReferencesUpdate(was, v)
		if len(l) > 0 {
			return append(l, update(was, v, c)...)
		}
		is, l := become(v, c)
		return append(l, update(was, is, c)...)
	}
	return k
}

// become is the VM as it is judged, with what is wrong with what it names. What is not known
// stays named.
func become(v *vmi.VirtualMachine, c Cluster) (*vmi.VirtualMachine, field.ErrorList) {
	out, l := instancetype.Check(v, c.Instancetype, c.Preference, c.Defaults)
	if c.Instancetype == nil {
		out.Spec.Instancetype = v.Spec.Instancetype
	}
	if c.Preference == nil {
		out.Spec.Preference = v.Spec.Preference
	}
	return out, l
}
