package vmi

// FeatureHyperv is the set of interfaces of Hyper-V that the guest sees. Each
// is off unless it is named. Some need others, which are then switched on too.
type FeatureHyperv struct {
	// Relaxed stops the guest from calling a crash when a timer was late.
	// +optional
	Relaxed *FeatureState `json:"relaxed,omitempty"`

	// VAPIC lets the guest reach its interrupt controller more cheaply.
	// +optional
	VAPIC *FeatureState `json:"vapic,omitempty"`

	// Spinlocks makes a processor that waits for a lock give way.
	// +optional
	Spinlocks *FeatureSpinlocks `json:"spinlocks,omitempty"`

	// VPIndex shows each processor its number.
	// +optional
	VPIndex *FeatureState `json:"vpindex,omitempty"`

	// Runtime shows the guest how long each processor ran.
	// +optional
	Runtime *FeatureState `json:"runtime,omitempty"`

	// SyNIC is the synthetic interrupt controller. It needs vpindex.
	// +optional
	SyNIC *FeatureState `json:"synic,omitempty"`

	// SyNICTimer is the set of synthetic timers. It needs synic.
	// +optional
	SyNICTimer *FeatureSyNICTimer `json:"synictimer,omitempty"`

	// Reset lets the guest restart itself by way of the hypervisor.
	// +optional
	Reset *FeatureState `json:"reset,omitempty"`

	// VendorID replaces the hypervisor's name that the guest sees.
	// +optional
	VendorID *FeatureVendorID `json:"vendorid,omitempty"`

	// Frequencies shows the guest the rates of its clocks.
	// +optional
	Frequencies *FeatureState `json:"frequencies,omitempty"`

	// Reenlightenment notifies the guest when the rate of its clock has changed
	// after a migration.
	// +optional
	Reenlightenment *FeatureState `json:"reenlightenment,omitempty"`

	// TLBFlush lets the guest flush the address caches of other processors
	// through the hypervisor. It needs vpindex.
	// +optional
	TLBFlush *FeatureTLBFlush `json:"tlbflush,omitempty"`

	// IPI lets the guest interrupt other processors through the hypervisor. It
	// needs vpindex.
	// +optional
	IPI *FeatureState `json:"ipi,omitempty"`

	// EVMCS makes nested guests faster. It needs vapic and
	// the processor feature vmx, thus a node with an Intel processor.
	// +optional
	EVMCS *FeatureState `json:"evmcs,omitempty"`
}

// FeatureSpinlocks makes a processor that waits for a lock give way.
type FeatureSpinlocks struct {
	// Enabled says whether the guest has the feature. Default, if the feature
	// is named: true.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// Retries is how often a processor tries to get a lock before it gives way,
	// at least 4095. Default: 4096.
	// +optional
	Retries *uint32 `json:"spinlocks,omitempty"`
}

// FeatureSyNICTimer is the set of synthetic timers.
type FeatureSyNICTimer struct {
	// Enabled says whether the guest has the feature. Default, if the feature
	// is named: true.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// Direct lets the timers interrupt the guest without a message. Default:
	// off.
	// +optional
	Direct *FeatureState `json:"direct,omitempty"`
}

// FeatureTLBFlush lets a guest flush address caches through the hypervisor.
type FeatureTLBFlush struct {
	// Enabled says whether the guest has the feature. Default, if the feature
	// is named: true.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// Direct lets a nested guest use the feature. Default:
	// off.
	// +optional
	// +podvisor:unserved=it is for a hypervisor in the guest, which no test can run
	Direct *FeatureState `json:"direct,omitempty"`

	// Extended lets the guest name single pages. Default: off.
	// +optional
	// +podvisor:unserved=no test can run KVM, whose guests alone see it
	Extended *FeatureState `json:"extended,omitempty"`
}

// FeatureVendorID replaces the hypervisor's name that the guest sees.
type FeatureVendorID struct {
	// Enabled says whether the name is replaced. Default, if the feature is
	// named: true.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// VendorID is the name, at most 12 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=12
	VendorID string `json:"vendorid,omitempty"`
}
