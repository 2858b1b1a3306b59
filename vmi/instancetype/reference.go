package instancetype

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
)

// The labels of a ControllerRevision that holds an instance type or a preference as it was
// when a VM first used it.
const (
	ObjectNameLabel       = "instancetype.kubevirt.io/object-name"
	ObjectKindLabel       = "instancetype.kubevirt.io/object-kind"
	ObjectUIDLabel        = "instancetype.kubevirt.io/object-uid"
	ObjectGenerationLabel = "instancetype.kubevirt.io/object-generation"
	ObjectVersionLabel    = "instancetype.kubevirt.io/object-version"
)

// Part is what a VM may name.
type Part string

// The parts, by the names of their fields in the spec of a VM.
const (
	Instancetype Part = "instancetype"
	Preference   Part = "preference"
)

// Kinds are the kinds of a part: in the cluster, which is the default, and in a namespace.
func (p Part) Kinds() [2]vmi.Definition {
	if p == Preference {
		return [2]vmi.Definition{VirtualMachineClusterPreferences.Definition, VirtualMachinePreferences.Definition}
	}
	return [2]vmi.Definition{VirtualMachineClusterInstancetypes.Definition, VirtualMachineInstancetypes.Definition}
}

// Reference is what a VM names, and what its status says of it.
//
// +kubebuilder:object:generate=false
type Reference struct {
	Part Part
	// Name and Kind are those of the object. Kind may be empty, in any case, and plural.
	Name, Kind string
	// Volume is the volume that is to name the object, and Policy what happens if it does
	// not. Empty: the VM names it.
	Volume string
	Policy *vmi.InferFromVolumeFailurePolicy
	// RevisionName is the ControllerRevision that the user wants. Empty: by the status.
	RevisionName string
	// Status is what is in use. Nil: nothing is yet.
	Status *vmi.InstancetypeStatusRef
}

// References are those of the VM, the instance type before the preference.
func References(v *vmi.VirtualMachine) []Reference {
	var out []Reference
	if m := v.Spec.Instancetype; m != nil {
		out = append(out, Reference{Instancetype, m.Name, m.Kind, m.InferFromVolume, m.InferFromVolumeFailurePolicy, m.RevisionName, v.Status.InstancetypeRef})
	}
	if m := v.Spec.Preference; m != nil {
		out = append(out, Reference{Preference, m.Name, m.Kind, m.InferFromVolume, m.InferFromVolumeFailurePolicy, m.RevisionName, v.Status.PreferenceRef})
	}
	return out
}

// Definition is the kind of the object. It is false if the VM names none that there is.
func (r Reference) Definition() (vmi.Definition, bool) { return r.Part.definition(r.Kind) }

func (p Part) definition(kind string) (vmi.Definition, bool) {
	kind = strings.ToLower(kind)
	for _, d := range p.Kinds() {
		if kind == "" || kind == d.Plural || kind == strings.ToLower(d.Kind) {
			return d, true
		}
	}
	return vmi.Definition{}, false
}

// Revision is the name of the ControllerRevision that holds the object for the VM. Empty:
// none does, and the object itself counts.
func (r Reference) Revision() string {
	if r.RevisionName != "" {
		return r.RevisionName
	}
	if r.Status == nil || r.Status.ControllerRevisionRef == nil || r.Name != r.Status.Name || !r.sameKind() {
		return ""
	}
	return r.Status.ControllerRevisionRef.Name
}

// sameKind says that the status is of the kind that the VM names. One that names none leaves
// it.
func (r Reference) sameKind() bool {
	now, ok := r.Definition()
	was, known := r.Part.definition(r.Status.Kind)
	return r.Kind == "" || ok && known && now.Kind == was.Kind
}

// Settled says that the status has what the VM names.
func (r Reference) Settled() bool {
	name := r.Revision()
	return name != "" && r.Status != nil && r.Status.ControllerRevisionRef != nil && r.Status.ControllerRevisionRef.Name == name && r.Status.Name == r.Name
}

// Holds says that the ControllerRevision may be used for the reference: the user named it, or
// it is of the object of this name.
func (r Reference) Holds(c *appsv1.ControllerRevision) bool {
	return r.RevisionName == c.Name || c.Labels[ObjectNameLabel] == r.Name
}

// Use is the reference as the status has it once a ControllerRevision holds the object.
func (r Reference) Use(revision string) *vmi.InstancetypeStatusRef {
	out := &vmi.InstancetypeStatusRef{Name: r.Name, Kind: r.Kind, ControllerRevisionRef: &vmi.ControllerRevisionRef{Name: revision}}
	if r.Status != nil {
		out.Name, out.Kind = cmp.Or(r.Name, r.Status.Name), cmp.Or(r.Kind, r.Status.Kind)
	}
	return out
}

// Annotation is the annotation of VMIs that says the name of the object.
func (r Reference) Annotation() string {
	if d, ok := r.Definition(); ok && !d.ClusterScoped {
		return "kubevirt.io/" + string(r.Part) + "-name"
	}
	return "kubevirt.io/cluster-" + string(r.Part) + "-name"
}

// Found is what a reference leads to.
//
// +kubebuilder:object:generate=false
type Found struct {
	Reference
	// Object is of one of the kinds of the package. Nil: there is none.
	Object vmi.Object
	// Revision is the ControllerRevision that holds it. Empty: it is the object itself.
	Revision string
	// Former says that the ControllerRevision does not say which version of the API it
	// holds, as those of earlier versions of KubeVirt: another is to take its place.
	Former bool
	// Missing is why there is no object.
	Missing string
}

// SpecsOf are the specs of what was found, each nil if it was not.
func SpecsOf(all []Found) (t *VirtualMachineInstancetypeSpec, p *VirtualMachinePreferenceSpec) {
	for _, f := range all {
		switch o := f.Object.(type) {
		case *VirtualMachineInstancetype:
			t = &o.Spec
		case *VirtualMachineClusterInstancetype:
			t = &o.Spec
		case *VirtualMachinePreference:
			p = &o.Spec
		case *VirtualMachineClusterPreference:
			p = &o.Spec
		}
	}
	return t, p
}

// held is the object in the ControllerRevision. The error says why there is none of the part.
func held(p Part, c *appsv1.ControllerRevision) (vmi.Object, error) {
	var is metav1.TypeMeta
	if err := json.Unmarshal(c.Data.Raw, &is); err != nil {
		return nil, fmt.Errorf("decode ControllerRevision %s: %w", c.Name, err)
	}
	for _, d := range p.Kinds() {
		if is.GroupVersionKind() != d.GroupVersionKind {
			continue
		}
		o := d.New()
		if err := json.Unmarshal(c.Data.Raw, o); err != nil {
			return nil, fmt.Errorf("decode ControllerRevision %s: %w", c.Name, err)
		}
		return o, nil
	}
	return nil, fmt.Errorf("ControllerRevision %s holds a %s of %q, and no %s of %s", c.Name, is.Kind, is.APIVersion, p, GroupVersion)
}
