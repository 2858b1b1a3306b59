package vmi

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// DomainSpec is the hardware of a virtual machine.
type DomainSpec struct {
	// Devices are the machine's devices.
	Devices Devices `json:"devices"`

	// CPU is the machine's processor. Default: one core.
	// +optional
	CPU *CPU `json:"cpu,omitempty"`

	// Memory is the machine's memory.
	// +optional
	Memory *Memory `json:"memory,omitempty"`

	// Resources are what the machine's pod asks the node for.
	// +optional
	Resources ResourceRequirements `json:"resources,omitempty"`
}

// CPU is the processor topology. The guest sees Sockets × Cores × Threads
// processors.
type CPU struct {
	// Cores per socket. Default: 1.
	// +optional
	Cores uint32 `json:"cores,omitempty"`

	// Sockets is the number of processor sockets. Default: 1.
	// +optional
	Sockets uint32 `json:"sockets,omitempty"`

	// Threads per core. Default: 1.
	// +optional
	Threads uint32 `json:"threads,omitempty"`
}

// VCPUs is the number of processors that the guest sees, at least 1. A nil CPU
// has one.
func (c *CPU) VCPUs() uint32 {
	if c == nil {
		return 1
	}
	return max(c.Cores, 1) * max(c.Sockets, 1) * max(c.Threads, 1)
}

// Memory is the memory of a machine.
type Memory struct {
	// Guest is the amount of memory that the guest sees, for example 512Mi.
	// Default: the memory request of the resources.
	// +optional
	Guest *resource.Quantity `json:"guest,omitempty"`
}

// ResourceRequirements are what the machine's pod asks the node for.
type ResourceRequirements struct {
	// Requests are the resources that the node must have free. Memory is the
	// guest's share: the overhead of running a machine is added to it. Default
	// for memory: the guest's memory; for cpu: a tenth of a CPU per processor.
	// +optional
	Requests corev1.ResourceList `json:"requests,omitempty"`

	// Limits are the resources that the pod may not exceed. The overhead of
	// running a machine is added to a memory limit.
	// +optional
	Limits corev1.ResourceList `json:"limits,omitempty"`
}

// GuestMemory is the amount of memory that the guest sees: memory.guest, or
// the memory request, or the memory limit. It is zero if the spec names none.
func (d *DomainSpec) GuestMemory() resource.Quantity {
	if d.Memory != nil && d.Memory.Guest != nil {
		return *d.Memory.Guest
	}
	if q, ok := d.Resources.Requests[corev1.ResourceMemory]; ok {
		return q
	}
	return d.Resources.Limits[corev1.ResourceMemory]
}

// Devices are the devices of a machine.
type Devices struct {
	// Disks are the machine's disks. Each shows the volume of the same name.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	Disks []Disk `json:"disks,omitempty"`

	// Interfaces are the machine's network interfaces. Each is connected to the
	// network of the same name. Default: one interface on the pod network.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	Interfaces []Interface `json:"interfaces,omitempty"`

	// AutoattachPodInterface adds an interface on the pod network to a machine
	// that lists neither interfaces nor networks. Default: true.
	// +optional
	AutoattachPodInterface *bool `json:"autoattachPodInterface,omitempty"`

	// Rng gives the guest a source of random numbers, fed by the node's.
	// +optional
	Rng *Rng `json:"rng,omitempty"`
}

// Rng is a virtio random number generator.
type Rng struct{}
