package defaults

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
)

// metadata keeps a new machine until its guest is off, and fixes the layout of
// its PCI bus, which a guest must not see change.
func metadata(m *metav1.ObjectMeta) {
	if m.DeletionTimestamp == nil && !slices.Contains(m.Finalizers, vmi.Finalizer) {
		m.Finalizers = append(m.Finalizers, vmi.Finalizer)
	}
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	if m.Annotations[vmi.PCITopologyAnnotation] == "" {
		m.Annotations[vmi.PCITopologyAnnotation] = vmi.PCITopology
	}
}

// status is that of a machine that nobody has looked at yet.
func status(v *vmi.VirtualMachineInstance, p Profile) {
	s := &v.Status
	if p.Now.IsZero() {
		s.Phase = vmi.Pending
	} else {
		s.SetPhase(vmi.Pending, p.Now)
	}
	s.RuntimeUser = vmi.User
	if c := v.Spec.Domain.CPU; s.CurrentCPUTopology == nil {
		s.CurrentCPUTopology = &vmi.CPUTopology{Cores: c.Cores, Sockets: c.Sockets, Threads: c.Threads}
	}
	if m := v.Spec.Domain.Memory; m != nil && m.Guest != nil && s.Memory == nil {
		s.Memory = &vmi.MemoryStatus{
			GuestAtBoot: new(m.Guest.DeepCopy()), GuestCurrent: new(m.Guest.DeepCopy()), GuestRequested: new(m.Guest.DeepCopy()),
		}
	}
}
