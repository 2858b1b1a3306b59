package validate

import (
	"slices"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/internal/vmi/quantity"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/instancetype"
)

// Instancetype returns what is wrong with an instance type of a namespace or of the cluster,
// or nothing. Whether a VMI of this size can run is judged with the VM that names it.
func Instancetype(s *instancetype.VirtualMachineInstancetypeSpec) field.ErrorList {
	at := field.NewPath("spec")
	l := quantity.Faults(at, s)
	if s.CPU.Guest == 0 {
		l = append(l, field.Invalid(at.Child("cpu", "guest"), s.CPU.Guest, "must be at least 1"))
	}
	if s.Memory.Guest.Sign() <= 0 {
		l = append(l, field.Invalid(at.Child("memory", "guest"), s.Memory.Guest.String(), "must be more than 0"))
	}
	overcommit := at.Child("memory", "overcommitPercent")
	switch n := s.Memory.OvercommitPercent; {
	case n < 0 || n > 100:
		l = append(l, field.Invalid(overcommit, n, "must be from 0 to 100"))
	case n != 0 && s.Memory.Hugepages != nil:
		l = append(l, field.Invalid(overcommit, n, "excludes hugepages, which are given whole: leave one of them out"))
	}
	return append(l, apivalidation.ValidateAnnotations(s.Annotations, at.Child("annotations"))...)
}

// Preference returns what is wrong with a preference of a namespace or of the cluster, or
// nothing. Whether a VMI can have what it prefers is judged with the VM that names it.
func Preference(s *instancetype.VirtualMachinePreferenceSpec) field.ErrorList {
	at := field.NewPath("spec")
	l := quantity.Faults(at, s)
	l = append(l, apivalidation.ValidateAnnotations(s.Annotations, at.Child("annotations"))...)
	cpu := at.Child("cpu")
	topologies := []instancetype.Topology{
		instancetype.TopologySockets, instancetype.TopologyCores, instancetype.TopologyThreads, instancetype.TopologySpread, instancetype.TopologyAny,
		instancetype.FormerTopologySockets, instancetype.FormerTopologyCores, instancetype.FormerTopologyThreads, instancetype.FormerTopologySpread, instancetype.FormerTopologyAny,
	}
	if s.CPU != nil && s.CPU.PreferredCPUTopology != nil {
		l = append(l, exactlyOneOf(cpu.Child("preferredCPUTopology"), *s.CPU.PreferredCPUTopology, topologies...)...)
	}
	if s.Topology() != instancetype.TopologySpread {
		return l
	}
	across, ratio := s.Spread()
	options := cpu.Child("spreadOptions")
	l = append(l, exactlyOneOf(options.Child("across"), across, instancetype.SpreadSocketsCores, instancetype.SpreadCoresThreads, instancetype.SpreadSocketsCoresThreads)...)
	switch {
	case ratio == 0:
		l = append(l, field.Invalid(options.Child("ratio"), ratio, "must be at least 1"))
	case across == instancetype.SpreadCoresThreads && ratio != 2:
		l = append(l, field.Invalid(options.Child("ratio"), ratio, "must be 2 across CoresThreads: a core has two threads"))
	}
	return l
}

// References returns what is wrong with how a VM names its instance type and its preference.
// Whether they exist, and what becomes of the VM, is not judged.
func References(v *vmi.VirtualMachine) field.ErrorList {
	var l field.ErrorList
	for _, r := range instancetype.References(v) {
		l = append(l, reference(r)...)
	}
	return l
}

func reference(r instancetype.Reference) field.ErrorList {
	at := field.NewPath("spec", string(r.Part))
	var l field.ErrorList
	switch {
	case r.Volume == "" && r.Name == "":
		e := field.NotFound(at, field.OmitValueType{})
		e.Detail = "it has no name: name what the VM is to use"
		l = append(l, e)
	case r.Volume != "" && r.Name != "":
		l = append(l, twice(at.Child("name"), r.Name))
	case r.Volume == "":
		for _, why := range validation.IsDNS1123Subdomain(r.Name) {
			l = append(l, field.Invalid(at.Child("name"), r.Name, why))
		}
	}
	kinds := r.Part.Kinds()
	switch _, ok := r.Definition(); {
	case r.Volume != "" && r.Kind != "":
		l = append(l, twice(at.Child("kind"), r.Kind))
	case !ok:
		l = append(l, field.NotSupported(at.Child("kind"), r.Kind, []string{kinds[0].Kind, kinds[1].Kind}))
	}
	if r.Policy != nil {
		l = append(l, exactlyOneOf(at.Child("inferFromVolumeFailurePolicy"), *r.Policy, vmi.InferFromVolumeReject, vmi.InferFromVolumeIgnore)...)
	}
	return l
}

// twice is a value that a volume names too.
func twice(at *field.Path, value string) *field.Error {
	e := field.NotSupported[string](at, value, nil)
	e.Detail = "inferFromVolume names it: leave one of them out"
	return e
}

// ReferencesUpdate returns what is wrong with how a VM names what it did not name before, or
// named otherwise. Under the name of its revision it would be the former one still.
func ReferencesUpdate(old, v *vmi.VirtualMachine) field.ErrorList {
	var l field.ErrorList
	before := instancetype.References(old)
	for _, is := range instancetype.References(v) {
		i := slices.IndexFunc(before, func(was instancetype.Reference) bool { return was.Part == is.Part })
		if i < 0 {
			l = append(l, reference(is)...)
			continue
		}
		was := before[i]
		if was.Name == is.Name && was.Kind == is.Kind && was.Volume == is.Volume {
			continue // it is stored
		}
		l = append(l, reference(is)...)
		if was.Name != is.Name && is.RevisionName != "" && was.RevisionName == is.RevisionName {
			l = append(l, field.Invalid(field.NewPath("spec", string(is.Part), "revisionName"), is.RevisionName,
				"holds "+was.Name+", and the VM now names "+is.Name+": empty it"))
		}
	}
	return l
}
