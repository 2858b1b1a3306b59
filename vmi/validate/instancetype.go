package validate

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
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
	overcommit := at.Child("memory", "overcommitPercent")
	switch n := s.Memory.OvercommitPercent; {
	if s.CPU.Guest == 0 {
		l = append(l, field.Invalid(at.Child("cpu", "guest"), s.CPU.Guest, "must be at least 1"))
	}
	if s.Memory.Guest.Sign() <= 0 {
		l = append(l, field.Invalid(at.Child("memory", "guest"), s.Memory.Guest.String(), "must be more than 0"))
	}
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
// Whether they exist, even as kinds, and what becomes of the VM, is not judged.
func References(v *vmi.VirtualMachine) field.ErrorList {
	var l field.ErrorList
	for _, r := range instancetype.References(v) {
		at := field.NewPath("spec", string(r.Part))
		if r.Name == "" {
			e := field.NotFound(at, field.OmitValueType{})
			e.Detail = "it has no name: name what the VM is to use"
			l = append(l, e)
		}
	}
	return l
}

// ReferencesUpdate returns why a VM may not name another instance type or preference so: under
// the name of the revision it would be the former one still.
func ReferencesUpdate(old, v *vmi.VirtualMachine) field.ErrorList {
	var l field.ErrorList
	for _, was := range instancetype.References(old) {
		for _, is := range instancetype.References(v) {
			if was.Part == is.Part && was.Name != is.Name && is.RevisionName != "" && was.RevisionName == is.RevisionName {
				l = append(l, field.Invalid(field.NewPath("spec", string(is.Part), "revisionName"), is.RevisionName,
					"holds "+was.Name+", and the VM now names "+is.Name+": empty it"))
			}
		}
	}
	return l
}
