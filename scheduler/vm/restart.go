package vm

import (
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/podvisor/podvisor/vmi"
)

// restartRequired says that the template differs from the one that the VMI was
// started from in something that only the next start changes. Where live is true, the
// VMI takes other processors, memory and placement while it runs. It takes link states
// always.
func restartRequired(started, now *vmi.VirtualMachineInstanceTemplate, live bool) bool {
	a, b := withoutLinks(started), withoutLinks(now)
	for _, t := range []*vmi.VirtualMachineInstanceTemplate{a, b} {
		if live {
			forgetLive(&t.Spec)
		}
	}
	return !equality.Semantic.DeepEqual(a.Spec, b.Spec)
}

// forgetLive drops what a VMI that can migrate takes while it runs.
func forgetLive(s *vmi.VirtualMachineInstanceSpec) {
	s.NodeSelector, s.Affinity, s.Tolerations = nil, nil, nil
	if s.Domain.CPU != nil {
		s.Domain.CPU.Sockets = 0
	}
	if s.Domain.Memory != nil {
		s.Domain.Memory.Guest = nil
	}
}
