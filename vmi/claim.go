package vmi

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PersistentVolumeClaimSpec is a claim that is to be made. It means what the spec
// of the kind PersistentVolumeClaim means.
type PersistentVolumeClaimSpec struct {
	// AccessModes are the ways in which the claim can be mounted.
	// +optional
	// +listType=atomic
	AccessModes []PersistentVolumeAccessMode `json:"accessModes,omitempty"`

	// Selector chooses among existing volumes by their labels.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// Resources is the size that is asked for.
	// +optional
	Resources VolumeResourceRequirements `json:"resources,omitzero"`

	// VolumeName is the volume that the claim is bound to.
	// +optional
	VolumeName string `json:"volumeName,omitempty"`

	// StorageClassName is the storage class. Default: the cluster's.
	// +optional
	StorageClassName *string `json:"storageClassName,omitempty"`

	// VolumeMode is Filesystem or Block. Default: Filesystem.
	// +optional
	VolumeMode *PersistentVolumeMode `json:"volumeMode,omitempty"`

	// DataSource is what the claim is filled from: a snapshot or another claim
	// of the namespace.
	// +optional
	DataSource *TypedLocalObjectReference `json:"dataSource,omitempty"`

	// DataSourceRef is what the claim is filled from: an object of any kind that
	// the cluster can fill claims from.
	// +optional
	DataSourceRef *TypedObjectReference `json:"dataSourceRef,omitempty"`

	// VolumeAttributesClassName is the class of attributes that the volume is
	// given, for example its speed.
	// +optional
	VolumeAttributesClassName *string `json:"volumeAttributesClassName,omitempty"`
}

// VolumeResourceRequirements is the size of a claim, under the name storage.
type VolumeResourceRequirements struct {
	// Limits is the most that the claim may have.
	// +optional
	Limits ResourceList `json:"limits,omitempty"`

	// Requests is the least that the claim must have.
	// +optional
	Requests ResourceList `json:"requests,omitempty"`
}

// PersistentVolumeAccessMode is a way in which a claim can be mounted.
type PersistentVolumeAccessMode string

// The ways in which a claim can be mounted.
const (
	ReadWriteOnce    PersistentVolumeAccessMode = "ReadWriteOnce"
	ReadOnlyMany     PersistentVolumeAccessMode = "ReadOnlyMany"
	ReadWriteMany    PersistentVolumeAccessMode = "ReadWriteMany"
	ReadWriteOncePod PersistentVolumeAccessMode = "ReadWriteOncePod"
)

// PersistentVolumeMode says whether a claim is a file system or a block device.
type PersistentVolumeMode string

// The modes of a claim. The zero value stands for Filesystem.
const (
	PersistentVolumeFilesystem PersistentVolumeMode = "Filesystem"
	PersistentVolumeBlock      PersistentVolumeMode = "Block"
)
