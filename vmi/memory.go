package vmi

import "k8s.io/apimachinery/pkg/api/resource"

// Memory is the memory of a guest.
type Memory struct {
	// Guest is the amount of memory that the guest sees, for example 512Mi. Less
	// than 1Mi, or more than the memory limit without a request below that limit,
	// is refused. Default: the memory request of the resources, or else the limit.
	// A VMI that names none of them is refused.
	// +optional
	Guest *resource.Quantity `json:"guest,omitempty"`

	// MaxGuest is the amount of memory that can be had without a restart, by
	// adding memory to the running guest. Default: four times guest, except on
	// arm64, where memory cannot be added. A value below guest is refused.
	// +optional
	MaxGuest *resource.Quantity `json:"maxGuest,omitempty"`

	// Hugepages backs the guest's memory with huge pages of the node. The pod
	// asks for them, so a node without enough of them is not chosen.
	// +optional
	Hugepages *Hugepages `json:"hugepages,omitempty"`
}

// Hugepages backs a guest's memory with huge pages.
type Hugepages struct {
	// PageSize is the size of a page, for example 2Mi or 1Gi: one that the nodes
	// have reserved. The guest's memory must be a multiple of it.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[01]?[0-9])?$`
	PageSize string `json:"pageSize,omitempty"`
}

// MemoryStatus is the observed memory of a VMI.
type MemoryStatus struct {
	// GuestAtBoot is the memory that the guest started with.
	// +optional
	GuestAtBoot *resource.Quantity `json:"guestAtBoot,omitempty"`
	// GuestCurrent is the memory that the guest has now: for now, what it started
	// with.
	// +optional
	GuestCurrent *resource.Quantity `json:"guestCurrent,omitempty"`
	// GuestRequested is the memory that the spec asks for.
	// +optional
	GuestRequested *resource.Quantity `json:"guestRequested,omitempty"`
	// MemoryOverhead is what the pod is given beside the guest's memory.
	// +optional
	MemoryOverhead *resource.Quantity `json:"memoryOverhead,omitempty"`
}
