package defaults

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podvisor/podvisor/internal/vmi/quantity"
	"github.com/podvisor/podvisor/vmi"
)

// resources asks for the CPUs that the VMI is limited to.
func resources(d *vmi.DomainSpec, p Profile) {
	r := &d.Resources
	if q := r.Requests[corev1.ResourceCPU]; !q.IsZero() {
		return
	}
	q := r.Limits[corev1.ResourceCPU].DeepCopy()
	if q.IsZero() && p.CPURequest != nil && (d.CPU == nil || !d.CPU.DedicatedCPUPlacement) {
		q = p.CPURequest.DeepCopy()
	}
	if q.Sign() <= 0 {
		return
	}
	if r.Requests == nil {
		r.Requests = corev1.ResourceList{}
	}
	r.Requests[corev1.ResourceCPU] = q
}

// memory gives the guest what is requested of the node for it.
func memory(d *vmi.DomainSpec) {
	if d.Memory != nil && d.Memory.Guest != nil {
		return
	}
	guest := d.Resources.Requests[corev1.ResourceMemory]
	if guest.IsZero() {
		guest = d.Resources.Limits[corev1.ResourceMemory]
	}
	if guest.IsZero() && d.Memory != nil && d.Memory.Hugepages != nil {
		guest, _ = quantity.Parse(d.Memory.Hugepages.PageSize)
	}
	// What makes no sense is the validation's to refuse, where it was written.
	if guest.Sign() <= 0 {
		return
	}
	if d.Memory == nil {
		d.Memory = &vmi.Memory{}
	}
	guest = guest.DeepCopy()
	d.Memory.Guest = &guest
}

// The sizes in which memory is added to a running VMI, and the memory that
// one must have for it.
const (
	memoryBlock   = 2 << 20
	memoryMinimum = 1 << 30
)

// maxGuest leaves room for memory if the VMI can be given more at all.
func maxGuest(s *vmi.VirtualMachineInstanceSpec, p Profile) {
	m := s.Domain.Memory
	if s.Architecture != AMD64 || m == nil || m.Guest == nil || m.MaxGuest != nil {
		return
	}
	// The guest's memory nodes are those of the node, of which nothing can be
	// added.
	if c := s.Domain.CPU; c != nil && c.NUMA != nil && c.NUMA.GuestMappingPassthrough != nil {
		return
	}
	// The key of the guest's memory is that of the memory which it starts with.
	if s.Domain.LaunchSecurity != nil {
		return
	}
	block := int64(memoryBlock)
	if m.Hugepages != nil {
		q, err := quantity.Parse(m.Hugepages.PageSize)
		if err != nil || q.Value() <= 0 {
			return
		}
		block = max(block, q.Value())
	}
	guest := m.Guest.Value()
	ratio := int64(p.hotplugRatio())
	if guest < memoryMinimum || guest%block != 0 || guest > quantity.Most/ratio {
		return
	}
	most := resource.NewQuantity(guest*ratio, resource.BinarySI)
	if p.MaxGuest != nil {
		most = new(p.MaxGuest.DeepCopy())
	}
	if most.Value() < guest || most.Value()%block != 0 {
		return
	}
	m.MaxGuest = most
}
