package instancetype

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
)

// defaultLabel begins the labels of a claim that name what a VM gets that boots from it. The
// part follows, and "-kind" for its kind.
const defaultLabel = "instancetype.kubevirt.io/default-"

// Infer returns a copy of the VM, one of the namespace, that names what the labels of claims
// say where it names a volume instead. With the policy Ignore it names nothing where they do
// not say it, and its template has no memory of its own where they name an instance type.
//
// Faults are what else keeps a volume from naming something. That part of the VM is as it
// was. The error is that of the Lookup.
func (l Lookup) Infer(namespace string, v *vmi.VirtualMachine) (*vmi.VirtualMachine, field.ErrorList, error) {
	out := v.DeepCopy()
	var faults field.ErrorList
	for _, r := range References(v) {
		if r.Volume == "" {
			continue
		}
		n, err := l.infer(namespace, v, r)
		switch {
		case err != nil:
			return v, nil, err
		case n.fault != nil:
			faults = append(faults, n.fault)
		default:
			n.name(out, r)
		}
	}
	return out, faults, nil
}

// inferred is what a volume names. Without an object and a fault it names nothing.
type inferred struct {
	object, kind string
	fault        *field.Error
}

// name has the VM name what its volume does.
func (n inferred) name(v *vmi.VirtualMachine, r Reference) {
	switch {
	case r.Part == Instancetype && n.object == "":
		v.Spec.Instancetype = nil
	case r.Part == Instancetype:
		v.Spec.Instancetype = &vmi.InstancetypeMatcher{Name: n.object, Kind: n.kind}
		if r.ignores() {
			v.Spec.Template.Spec.Domain.Memory = nil
		}
	case n.object == "":
		v.Spec.Preference = nil
	default:
		v.Spec.Preference = &vmi.PreferenceMatcher{Name: n.object, Kind: n.kind}
	}
}

func (r Reference) ignores() bool { return r.Policy != nil && *r.Policy == vmi.InferFromVolumeIgnore }

func (r Reference) fault(format string, a ...any) inferred {
	at := field.NewPath("spec", string(r.Part), "inferFromVolume")
	return inferred{fault: field.Invalid(at, r.Volume, fmt.Sprintf(format, a...))}
}

// nothing is the volume that names nothing, which the policy makes a fault.
func (r Reference) nothing(format string, a ...any) inferred {
	if r.ignores() {
		return inferred{}
	}
	return r.fault(format+": name the "+string(r.Part)+" in the VM", a...)
}

func (l Lookup) infer(namespace string, v *vmi.VirtualMachine, r Reference) (inferred, error) {
	claim, n := r.claim(namespace, v)
	if claim == "" {
		return n, nil
	}
	c, err := l.Claim(namespace, claim)
	if err != nil {
		return inferred{}, err
	}
	if c == nil {
		return r.fault("PersistentVolumeClaim %s does not exist", claim), nil
	}
	label := defaultLabel + string(r.Part)
	if c.Labels[label] == "" {
		return r.nothing("PersistentVolumeClaim %s has no label %s", claim, label), nil
	}
	return inferred{object: c.Labels[label], kind: c.Labels[label+"-kind"]}, nil
}

// claim is the claim whose labels count for the volume. Empty: there is none, and inferred
// says what comes of it.
func (r Reference) claim(namespace string, v *vmi.VirtualMachine) (string, inferred) {
	if v.Spec.Template == nil {
		return "", r.fault("the VM has no volumes")
	}
	all := v.Spec.Template.Spec.Volumes
	i := slices.IndexFunc(all, func(o vmi.Volume) bool { return o.Name == r.Volume })
	switch {
	case i < 0:
		return "", r.fault("the VM has no volume of this name")
	case all[i].PersistentVolumeClaim != nil:
		return all[i].PersistentVolumeClaim.ClaimName, inferred{}
	case all[i].DataVolume == nil:
		return "", r.nothing("the volume is neither a persistentVolumeClaim nor a dataVolume")
	}
	name := all[i].DataVolume.Name
	i = slices.IndexFunc(v.Spec.DataVolumeTemplates, func(t vmi.DataVolumeTemplate) bool { return t.ObjectMeta.Name == name })
	if i < 0 {
		return name, inferred{} // the claim of a DataVolume has its name and its labels
	}
	return r.source(namespace, &v.Spec.DataVolumeTemplates[i].Spec)
}

// source is the claim that a DataVolume of the VM is filled from. Labels of what is not a
// claim are not read.
func (r Reference) source(namespace string, d *vmi.DataVolumeSpec) (string, inferred) {
	unread := "the volume is filled from a %s, whose labels are not read: name the " + string(r.Part) + " in the VM"
	switch s := d.Source; {
	case d.SourceRef != nil:
		return "", r.fault(unread, d.SourceRef.Kind)
	case s != nil && s.Snapshot != nil:
		return "", r.fault(unread, "VolumeSnapshot")
	case s == nil || s.PVC == nil:
		return "", r.nothing("the volume is not filled from a claim")
	case s.PVC.Namespace != "" && s.PVC.Namespace != namespace:
		return "", r.fault(unread, "claim of namespace "+s.PVC.Namespace)
	default:
		return s.PVC.Name, inferred{}
	}
}
