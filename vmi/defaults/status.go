package defaults

import (
	"slices"
	"strings"

	"github.com/podvisor/podvisor/vmi"
)

// finalizer keeps a new VMI until its guest is off.
func finalizer(v *vmi.VirtualMachineInstance) {
	m := &v.ObjectMeta
	if m.DeletionTimestamp == nil && !slices.Contains(m.Finalizers, vmi.Finalizer) {
		m.Finalizers = append(m.Finalizers, vmi.Finalizer)
	}
}

// layout fixes the layout of the PCI bus of a VMI that has no pod yet: a guest must not see it change.
func layout(v *vmi.VirtualMachineInstance) {
	m := &v.ObjectMeta
	if !pciPorts(&v.Spec) || m.Annotations[vmi.PCITopologyAnnotation] != "" {
		return
	}
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	m.Annotations[vmi.PCITopologyAnnotation] = vmi.PCITopology
}

// pciPorts says that the machine type has PCI Express ports, which the layout
// version counts: q35 and virt have, in all their versions.
func pciPorts(s *vmi.VirtualMachineInstanceSpec) bool {
	t := s.Domain.Machine.Type
	return s.Architecture != S390X && (strings.Contains(t, "q35") || t == "virt" || strings.HasPrefix(t, "virt-"))
}

// status is that of a VMI that no controller has seen yet.
func status(v *vmi.VirtualMachineInstance, p Profile) {
	s := &v.Status
	if p.Now.IsZero() {
		s.Phase = vmi.PhasePending
	} else {
		s.SetPhase(vmi.PhasePending, p.Now)
	}
	s.RuntimeUser = vmi.RuntimeUID
	if c := v.Spec.Domain.CPU; s.CurrentCPUTopology == nil {
		s.CurrentCPUTopology = &vmi.CPUTopology{Cores: c.Cores, Sockets: c.Sockets, Threads: c.Threads}
	}
	if m := v.Spec.Domain.Memory; m != nil && m.Guest != nil && s.Memory == nil {
		s.Memory = &vmi.MemoryStatus{
			GuestAtBoot: new(m.Guest.DeepCopy()), GuestCurrent: new(m.Guest.DeepCopy()), GuestRequested: new(m.Guest.DeepCopy()),
		}
	}
}
