package instancetype

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
)

// requirements returns the first requirement of a preference that a VM does not meet, or
// nothing: of the processors, the memory, the architecture. The spec is that of its
// template, complete. t is its instance type. Nil: it has none, and the template says how
// large it is. p may be nil.
func requirements(s *vmi.VirtualMachineInstanceSpec, t *VirtualMachineInstancetypeSpec, p *VirtualMachinePreferenceSpec) field.ErrorList {
	if p == nil || p.Requirements == nil {
		return nil
	}
	at, r := field.NewPath("spec", "template", "spec"), p.Requirements
	if r.CPU != nil {
		if l := enoughCPUs(at.Child("domain", "cpu"), s.Domain.CPU, t, p); l != nil {
			return l
		}
	}
	if r.Memory != nil {
		if l := enoughMemory(at.Child("domain", "memory"), s.Domain.Memory, t, r.Memory.Guest); l != nil {
			return l
		}
	}
	if r.Architecture != nil && s.Architecture != *r.Architecture {
		return unmet("architecture "+*r.Architecture, fmt.Sprintf("%q", s.Architecture), at.Child("architecture").String())
	}
	return nil
}

// sizePath is the field that names the instance type.
var sizePath = field.NewPath("spec", "instancetype").String()

// unmet is the fault of a requirement, of the fields that could meet it.
func unmet(required, is string, fields ...string) field.ErrorList {
	return field.ErrorList{&field.Error{
		Type: field.ErrorTypeNotFound, Field: strings.Join(fields, ", "), BadValue: field.OmitValueType{},
		Detail: fmt.Sprintf("the preference requires %s, and this is %s", required, is),
	}}
}

func enoughCPUs(at *field.Path, c *vmi.CPU, t *VirtualMachineInstancetypeSpec, p *VirtualMachinePreferenceSpec) field.ErrorList {
	need := p.Requirements.CPU.Guest
	required := fmt.Sprintf("%d processors", need)
	if t != nil {
		if t.CPU.Guest >= need {
			return nil
		}
		return unmet(required, fmt.Sprint(t.CPU.Guest), sizePath)
	}
	if c == nil {
		if need == 0 {
			return nil
		}
		return unmet(required, "0", at.String())
	}
	has, names := uint64(1), counted(p)
	var fields []string
	for _, name := range names {
		has *= uint64(map[string]uint32{"sockets": c.Sockets, "cores": c.Cores, "threads": c.Threads}[name])
		fields = append(fields, at.Child(name).String())
	}
	if has >= uint64(need) {
		return nil
	}
	return unmet(required, fmt.Sprint(has), fields...)
}

// counted are the fields whose product is the number of processors for the preference.
func counted(p *VirtualMachinePreferenceSpec) []string {
	switch t := p.Topology(); t {
	case TopologyCores, TopologyThreads:
		return []string{string(t)}
	case TopologyAny:
		return []string{"sockets", "cores", "threads"}
	case TopologySpread:
		switch across, _ := p.Spread(); across {
		case SpreadCoresThreads:
			return []string{"cores", "threads"}
		case SpreadSocketsCoresThreads:
			return []string{"sockets", "cores", "threads"}
		}
		return []string{"sockets", "cores"}
	}
	return []string{"sockets"}
}

func enoughMemory(at *field.Path, m *vmi.Memory, t *VirtualMachineInstancetypeSpec, need resource.Quantity) field.ErrorList {
	var has resource.Quantity
	where := at.String()
	if t != nil {
		has, where = t.Memory.Guest, sizePath
	}
	if m != nil && m.Guest != nil {
		has = *m.Guest
	}
	if has.Cmp(need) >= 0 {
		return nil
	}
	return unmet(need.String()+" of memory", has.String(), where)
}
