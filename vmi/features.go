package vmi

// Features switches parts of the machine type and of the hypervisor on and off. A
// feature that is named without enabled is on; one that is left out is as its
// comment says.
type Features struct {
	// ACPI lets the guest find its devices and power itself off. Default: on.
	// Without it a guest cannot be asked to power off, only be switched off.
	// +optional
	ACPI FeatureState `json:"acpi,omitzero"`

	// APIC is the interrupt controller of each processor. Default: on.
	// +optional
	APIC *FeatureAPIC `json:"apic,omitempty"`

	// Hyperv shows the guest interfaces of Hyper-V, with which Windows runs
	// much faster. Default: none.
	// +optional
	Hyperv *FeatureHyperv `json:"hyperv,omitempty"`

	// HypervPassthrough shows the guest all interfaces of Hyper-V that the node
	// has. It excludes hyperv, and binds the guest to nodes that have the same ones.
	// Default: off.
	// +optional
	HypervPassthrough *HypervPassthrough `json:"hypervPassthrough,omitempty"`

	// KVM is how the hypervisor shows itself to the guest.
	// +optional
	KVM *FeatureKVM `json:"kvm,omitempty"`

	// PVSpinlock lets a processor of the guest that waits for a lock give way to
	// others of the node. Default: the hypervisor's choice.
	// +optional
	PVSpinlock *FeatureState `json:"pvspinlock,omitempty"`

	// SMM is the system management mode, in which firmware keeps its variables
	// from the operating system. efi.secureBoot needs it. Default: off.
	// +optional
	SMM *FeatureState `json:"smm,omitempty"`
}

// FeatureState switches one feature.
type FeatureState struct {
	// Enabled says whether the guest has the feature. Default, if the feature
	// is named: true.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
}

// FeatureKVM is how KVM shows itself to the guest.
type FeatureKVM struct {
	// Hidden keeps the guest from finding KVM, for drivers that refuse to work in a
	// virtual machine. Default: false.
	// +optional
	Hidden bool `json:"hidden,omitempty"`
}

// HypervPassthrough shows the guest all interfaces of Hyper-V that the node has.
type HypervPassthrough struct {
	// Enabled says whether it does. Default: true.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
}

// FeatureAPIC is the interrupt controller of each processor.
type FeatureAPIC struct {
	// Enabled says whether the guest has the feature. Default: true.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// EndOfInterrupt lets the guest end an interrupt without leaving guest mode.
	// Default: false, which leaves the choice to the hypervisor.
	// +optional
	EndOfInterrupt bool `json:"endOfInterrupt,omitempty"`
}

// On says whether the feature is asked for: it is named, and not disabled.
func (f *FeatureState) On() bool { return f != nil && (f.Enabled == nil || *f.Enabled) }
