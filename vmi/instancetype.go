package vmi

// InstancetypeMatcher names an instance type.
type InstancetypeMatcher struct {
	// Name is the name of the instance type. Required without inferFromVolume.
	// +optional
	Name string `json:"name,omitempty"`

	// Kind is VirtualMachineInstancetype, one of the VM's namespace, or
	// VirtualMachineClusterInstancetype. Default: the latter.
	// +optional
	Kind string `json:"kind,omitempty"`

	// RevisionName is the ControllerRevision that holds the instance type. Default:
	// that in status.instancetypeRef, as long as the VM names the same object.
	// +optional
	RevisionName string `json:"revisionName,omitempty"`

	// InferFromVolume takes name and kind, when the VM is written, from labels of the
	// claim behind this volume. The VM then has these in its place.
	// +optional
	InferFromVolume string `json:"inferFromVolume,omitempty"`

	// InferFromVolumeFailurePolicy says what happens if those labels are not
	// there: Reject refuses the VM, Ignore uses none. Default: Reject.
	// +optional
	InferFromVolumeFailurePolicy *InferFromVolumeFailurePolicy `json:"inferFromVolumeFailurePolicy,omitempty"`
}

// PreferenceMatcher names a preference.
type PreferenceMatcher struct {
	// Name is the name of the preference. Required without inferFromVolume.
	// +optional
	Name string `json:"name,omitempty"`

	// Kind is VirtualMachinePreference, one of the VM's namespace, or
	// VirtualMachineClusterPreference. Default: the latter.
	// +optional
	Kind string `json:"kind,omitempty"`

	// RevisionName is the ControllerRevision that holds the preference. Default:
	// that in status.preferenceRef, as long as the VM names the same object.
	// +optional
	RevisionName string `json:"revisionName,omitempty"`

	// InferFromVolume takes name and kind, when the VM is written, from labels of the
	// claim behind this volume. The VM then has these in its place.
	// +optional
	InferFromVolume string `json:"inferFromVolume,omitempty"`

	// InferFromVolumeFailurePolicy says what happens if those labels are not
	// there: Reject refuses the VM, Ignore uses none. Default: Reject.
	// +optional
	InferFromVolumeFailurePolicy *InferFromVolumeFailurePolicy `json:"inferFromVolumeFailurePolicy,omitempty"`
}

// InferFromVolumeFailurePolicy says what happens if a claim has no labels to
// take a name from.
//
// +podvisor:enum
type InferFromVolumeFailurePolicy string

// The policies for claims without labels. The zero value stands for Reject.
const (
	InferFromVolumeReject InferFromVolumeFailurePolicy = "Reject"
	InferFromVolumeIgnore InferFromVolumeFailurePolicy = "Ignore"
)

// InstancetypeStatusRef is an instance type or a preference that is in use.
type InstancetypeStatusRef struct {
	// Name is its name.
	// +optional
	Name string `json:"name,omitempty"`

	// Kind is its kind.
	// +optional
	Kind string `json:"kind,omitempty"`

	// InferFromVolume is the volume that its name was taken from.
	// +optional
	// +podvisor:unserved=a VM that is stored has the name that was taken
	InferFromVolume string `json:"inferFromVolume,omitempty"`

	// InferFromVolumeFailurePolicy says what would have happened without a name.
	// +optional
	// +podvisor:unserved=a VM that is stored has the name that was taken
	InferFromVolumeFailurePolicy *InferFromVolumeFailurePolicy `json:"inferFromVolumeFailurePolicy,omitempty"`

	// ControllerRevisionRef names the ControllerRevision that holds it as it was
	// when the VM first used it.
	// +optional
	ControllerRevisionRef *ControllerRevisionRef `json:"controllerRevisionRef,omitempty"`
}

// ControllerRevisionRef names a ControllerRevision of the VM's namespace.
type ControllerRevisionRef struct {
	// Name of the ControllerRevision.
	// +optional
	Name string `json:"name,omitempty"`
}
