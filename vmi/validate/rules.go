package validate

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
)

// Rules are what a cluster allows its machines beside what can work at all. The
// zero value allows everything.
type Rules struct {
	// NoBridge forbids the binding bridge on the pod network.
	NoBridge bool
}

// Spec returns what the cluster does not allow of the spec at the path, or
// nothing. Defaults must have been applied to it.
func (r Rules) Spec(at *field.Path, s *vmi.VirtualMachineInstanceSpec) field.ErrorList {
	var l field.ErrorList
	if !r.NoBridge {
		return nil
	}
	pod := map[string]bool{}
	for _, n := range s.Networks {
		pod[n.Name] = n.Pod != nil
	}
	for i, n := range s.Domain.Devices.Interfaces {
		if n.Bridge != nil && pod[n.Name] {
			l = append(l, field.Forbidden(at.Child("domain", "devices", "interfaces").Index(i).Child("bridge"),
				"the binding bridge is not permitted on the pod network of this cluster: use masquerade"))
		}
	}
	return l
}
