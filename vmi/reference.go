package vmi

// LocalObjectReference names an object in the machine's namespace.
//
// +structType=atomic
type LocalObjectReference struct {
	// Name is the object's name.
	// +optional
	// +kubebuilder:default=""
	Name string `json:"name,omitempty"`
}

// TypedLocalObjectReference names an object of any kind in the same namespace.
//
// +structType=atomic
type TypedLocalObjectReference struct {
	// APIGroup is the group of the kind. Default: the core group.
	// +optional
	APIGroup *string `json:"apiGroup,omitempty"`

	// Kind is the object's kind.
	Kind string `json:"kind"`

	// Name is the object's name.
	Name string `json:"name"`
}

// TypedObjectReference names an object of any kind in any namespace.
type TypedObjectReference struct {
	// APIGroup is the group of the kind. Default: the core group.
	// +optional
	APIGroup *string `json:"apiGroup,omitempty"`

	// Kind is the object's kind.
	Kind string `json:"kind"`

	// Name is the object's name.
	Name string `json:"name"`

	// Namespace is the object's namespace. A ReferenceGrant there must allow it.
	// Default: the same namespace.
	// +optional
	Namespace *string `json:"namespace,omitempty"`
}
