package vmi

import "k8s.io/apimachinery/pkg/api/resource"

// DownwardAPIVolumeFile is a file with a fact about the pod: exactly one of
// fieldRef and resourceFieldRef is set.
type DownwardAPIVolumeFile struct {
	// Path is the file's path, relative and without "..".
	Path string `json:"path"`

	// FieldRef is a field of the pod.
	// +optional
	FieldRef *ObjectFieldSelector `json:"fieldRef,omitempty"`

	// ResourceFieldRef is a limit or a request of a container.
	// +optional
	ResourceFieldRef *ResourceFieldSelector `json:"resourceFieldRef,omitempty"`

	// Mode are the file's permissions, from 0 to 0777. Default: the volume's.
	// +optional
	Mode *int32 `json:"mode,omitempty"`
}

// ObjectFieldSelector names a field of the pod.
//
// +structType=atomic
type ObjectFieldSelector struct {
	// APIVersion is the version of the pod's schema. Default: v1.
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`

	// FieldPath is the field, for example metadata.labels.
	FieldPath string `json:"fieldPath"`
}

// ResourceFieldSelector names a limit or a request of a container.
//
// +structType=atomic
type ResourceFieldSelector struct {
	// ContainerName is the container.
	// +optional
	ContainerName string `json:"containerName,omitempty"`

	// Resource is the limit or request, for example limits.memory.
	Resource string `json:"resource"`

	// Divisor is the unit that the file counts in. Default: 1.
	// +optional
	Divisor resource.Quantity `json:"divisor,omitzero"`
}
