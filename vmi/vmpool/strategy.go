package vmpool

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PoolUpdateStrategy says when VMs get a template that has changed. At most one field is
// set.
//
// +podvisor:atMostOne:of=unmanaged;opportunistic;proactive,message="a pool has at most one update strategy of"
type PoolUpdateStrategy struct {
	// Unmanaged leaves the VMs that there are as they are.
	// +optional
	Unmanaged *PoolUnmanaged `json:"unmanaged,omitempty"`

	// Opportunistic changes all VMs at once. One that runs has the change from its next
	// start on.
	// +optional
	Opportunistic *PoolOpportunisticUpdate `json:"opportunistic,omitempty"`

	// Proactive changes VMs that run one after the other and restarts them.
	// +optional
	Proactive *PoolProactiveUpdate `json:"proactive,omitempty"`
}

// PoolUnmanaged has no settings.
type PoolUnmanaged struct{}

// PoolOpportunisticUpdate has no settings.
type PoolOpportunisticUpdate struct{}

// PoolProactiveUpdate says in which order VMs are restarted.
type PoolProactiveUpdate struct {
	// SelectionPolicy says which VMs are first. Those that are not ready are before all.
	// +optional
	SelectionPolicy *PoolSelectionPolicy `json:"selectionPolicy,omitempty"`
}

// PoolScaleInStrategy says which VMs are deleted if there are too many. At most one field is
// set.
//
// +podvisor:atMostOne:of=unmanaged;opportunistic;proactive,message="a pool has at most one scale-in strategy of"
type PoolScaleInStrategy struct {
	// Unmanaged deletes none: whoever scales the pool in deletes VMs or takes them out of
	// the pool.
	// +optional
	Unmanaged *PoolUnmanaged `json:"unmanaged,omitempty"`

	// Opportunistic deletes only VMs that are off.
	// +optional
	Opportunistic *PoolOpportunisticScaleIn `json:"opportunistic,omitempty"`

	// Proactive deletes VMs at once.
	// +optional
	Proactive *PoolProactiveScaleIn `json:"proactive,omitempty"`
}

// PoolOpportunisticScaleIn says what is left of VMs.
type PoolOpportunisticScaleIn struct {
	// StatePreservation says what is left of a VM that is deleted. Default: Disabled.
	// +optional
	StatePreservation *PoolStatePreservation `json:"statePreservation,omitempty"`
}

// PoolProactiveScaleIn says which VMs are deleted first, and what is left of them.
type PoolProactiveScaleIn struct {
	// SelectionPolicy says which VMs are deleted first. Default: those that are not ready,
	// then any.
	// +optional
	SelectionPolicy *PoolSelectionPolicy `json:"selectionPolicy,omitempty"`

	// StatePreservation says what is left of a VM that is deleted. Default: Disabled.
	// +optional
	StatePreservation *PoolStatePreservation `json:"statePreservation,omitempty"`
}

// PoolSelectionPolicy orders VMs.
type PoolSelectionPolicy struct {
	// Selectors select VMs that are before all others.
	// +optional
	Selectors *PoolSelectors `json:"selectors,omitempty"`

	// SortPolicy orders the VMs of which the rest says nothing. Default: Random.
	// +optional
	SortPolicy *PoolSortPolicy `json:"sortPolicy,omitempty"`
}

// PoolSelectors select VMs.
type PoolSelectors struct {
	// LabelSelector selects VMs by their labels.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}

// PoolSortPolicy is an order of VMs.
//
// +podvisor:enum
type PoolSortPolicy string

// The orders of VMs. The zero value stands for Random.
const (
	// SortAscending: the lowest ordinal is first.
	SortAscending PoolSortPolicy = "AscendingOrder"
	// SortDescending: the highest ordinal is first.
	SortDescending PoolSortPolicy = "DescendingOrder"
	// SortNewest: the VM that was made last is first.
	SortNewest PoolSortPolicy = "Newest"
	// SortOldest: the VM that was made first is first.
	SortOldest PoolSortPolicy = "Oldest"
	// SortRandom: in no order that means anything.
	SortRandom PoolSortPolicy = "Random"
)

// PoolStatePreservation says what is left of a VM that a pool deletes.
//
// +podvisor:enum
type PoolStatePreservation string

// What is left of a VM. The zero value stands for Disabled.
const (
	// PreserveNothing: its DataVolumes go with the VM.
	PreserveNothing PoolStatePreservation = "Disabled"
	// PreserveOffline: its DataVolumes stay until the pool is deleted, and are those of the
	// next VM of its name.
	PreserveOffline PoolStatePreservation = "Offline"
	// PreserveOnline: the memory of its guest stays too.
	// +podvisor:unserved=the memory of a guest is not saved
	PreserveOnline PoolStatePreservation = "Online"
)

// Preserves says that DataVolumes that are made for VMs of the pool outlive their VMs.
func (s *VirtualMachinePoolSpec) Preserves() bool {
	var p *PoolStatePreservation
	switch in := s.ScaleInStrategy; {
	case in == nil:
	case in.Proactive != nil:
		p = in.Proactive.StatePreservation
	case in.Opportunistic != nil:
		p = in.Opportunistic.StatePreservation
	}
	return p != nil && *p == PreserveOffline
}
