package vmi

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DataVolumeTemplate is a DataVolume (kind of cdi.kubevirt.io, of the
// Containerized Data Importer) that is made for a VirtualMachine.
type DataVolumeTemplate struct {
	// The kind and version, which may be left out.
	metav1.TypeMeta `json:",inline"`

	// ObjectMeta holds the name of the DataVolume, and its labels and
	// annotations.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	ObjectMeta metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the DataVolume's spec.
	Spec DataVolumeSpec `json:"spec"`
}

// DataVolumeSpec says what a claim is filled with.
//
// +podvisor:atMostOne:of=source;sourceRef,message="a DataVolume has at most one of"
// +podvisor:atMostOne:of=pvc;storage,message="a DataVolume has at most one of"
type DataVolumeSpec struct {
	// Source is what the claim is filled with.
	// +optional
	Source *DataVolumeSource `json:"source,omitempty"`

	// SourceRef names a DataSource, which holds what the claim is filled with.
	// +optional
	// +podvisor:unserved=a DataSource may lead to another namespace, and nothing checks whether who made the VM may read that
	SourceRef *DataVolumeSourceRef `json:"sourceRef,omitempty"`

	// PVC is the claim as it is to be made.
	// +optional
	PVC *corev1.PersistentVolumeClaimSpec `json:"pvc,omitempty"`

	// Storage is the claim with what follows from its storage class left out.
	// +optional
	Storage *DataVolumeStorage `json:"storage,omitempty"`

	// PriorityClassName is the priority of the pods that fill the claim.
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// ContentType is kubevirt, a disk image, or archive, a tar file. Default:
	// kubevirt.
	// +optional
	// +kubebuilder:validation:Enum=kubevirt;archive
	ContentType string `json:"contentType,omitempty"`

	// Checkpoints are the steps of an import in several steps.
	// +optional
	// +listType=atomic
	Checkpoints []DataVolumeCheckpoint `json:"checkpoints,omitempty"`

	// FinalCheckpoint says that the last checkpoint ends the import.
	// +optional
	FinalCheckpoint bool `json:"finalCheckpoint,omitempty"`

	// Preallocation takes all space of the disk at once. Default: false.
	// +optional
	Preallocation *bool `json:"preallocation,omitempty"`
}

// DataVolumeSource is what a claim is filled with: exactly one field is set.
//
// +podvisor:exactlyOne:of=blank;http;registry;pvc;snapshot;upload;s3;gcs;imageio;vddk,message="a DataVolume has exactly one source"
type DataVolumeSource struct {
	// Blank is nothing: an empty disk.
	// +optional
	Blank *DataVolumeBlankImage `json:"blank,omitempty"`
	// HTTP is a file on a web server.
	// +optional
	HTTP *DataVolumeSourceHTTP `json:"http,omitempty"`
	// Registry is a container disk.
	// +optional
	Registry *DataVolumeSourceRegistry `json:"registry,omitempty"`
	// PVC is another claim.
	// +optional
	PVC *DataVolumeSourceObject `json:"pvc,omitempty"`
	// Snapshot is a VolumeSnapshot.
	// +optional
	Snapshot *DataVolumeSourceObject `json:"snapshot,omitempty"`
	// Upload waits for a client to send an image.
	// +optional
	Upload *DataVolumeSourceUpload `json:"upload,omitempty"`
	// S3 is an object in an S3 store.
	// +optional
	S3 *DataVolumeSourceS3 `json:"s3,omitempty"`
	// GCS is an object in Google's cloud store.
	// +optional
	GCS *DataVolumeSourceGCS `json:"gcs,omitempty"`
	// Imageio is a disk of oVirt.
	// +optional
	Imageio *DataVolumeSourceImageIO `json:"imageio,omitempty"`
	// VDDK is a disk of vSphere.
	// +optional
	VDDK *DataVolumeSourceVDDK `json:"vddk,omitempty"`
}

// DataVolumeBlankImage has no settings.
type DataVolumeBlankImage struct{}

// DataVolumeSourceUpload has no settings.
type DataVolumeSourceUpload struct{}

// DataVolumeSourceObject names an object that a claim is filled from.
type DataVolumeSourceObject struct {
	// Namespace of the object.
	Namespace string `json:"namespace"`
	// Name of the object.
	Name string `json:"name"`
}

// DataVolumeSourceHTTP is a file on a web server.
type DataVolumeSourceHTTP struct {
	// URL of the file.
	URL string `json:"url"`
	// SecretRef is the Secret with user name and password.
	// +optional
	SecretRef string `json:"secretRef,omitempty"`
	// CertConfigMap is the ConfigMap with the server's certificate authority.
	// +optional
	CertConfigMap string `json:"certConfigMap,omitempty"`
	// ExtraHeaders are sent with the request.
	// +optional
	// +listType=atomic
	ExtraHeaders []string `json:"extraHeaders,omitempty"`
	// SecretExtraHeaders are Secrets with headers that are sent too.
	// +optional
	// +listType=atomic
	SecretExtraHeaders []string `json:"secretExtraHeaders,omitempty"`
}

// DataVolumeSourceRegistry is a container disk: url or imageStream is set.
type DataVolumeSourceRegistry struct {
	// URL of the image, for example docker://example.org/disk:1.
	// +optional
	URL *string `json:"url,omitempty"`
	// ImageStream is an image stream of OpenShift.
	// +optional
	ImageStream *string `json:"imageStream,omitempty"`
	// PullMethod is pod or node: where the image is fetched. Default: pod.
	// +optional
	PullMethod *string `json:"pullMethod,omitempty"`
	// SecretRef is the Secret with user name and password.
	// +optional
	SecretRef *string `json:"secretRef,omitempty"`
	// CertConfigMap is the ConfigMap with the registry's certificate authority.
	// +optional
	CertConfigMap *string `json:"certConfigMap,omitempty"`
	// Platform chooses among the images behind one reference.
	// +optional
	Platform *DataVolumePlatform `json:"platform,omitempty"`
}

// DataVolumePlatform chooses among the images behind one reference.
type DataVolumePlatform struct {
	// Architecture of the image.
	// +optional
	Architecture string `json:"architecture,omitempty"`
}

// DataVolumeSourceS3 is an object in an S3 store.
type DataVolumeSourceS3 struct {
	// URL of the object.
	URL string `json:"url"`
	// SecretRef is the Secret with the keys.
	// +optional
	SecretRef string `json:"secretRef,omitempty"`
	// CertConfigMap is the ConfigMap with the store's certificate authority.
	// +optional
	CertConfigMap string `json:"certConfigMap,omitempty"`
}

// DataVolumeSourceGCS is an object in Google's cloud store.
type DataVolumeSourceGCS struct {
	// URL of the object.
	URL string `json:"url"`
	// SecretRef is the Secret with the key.
	// +optional
	SecretRef string `json:"secretRef,omitempty"`
}

// DataVolumeSourceImageIO is a disk of oVirt.
type DataVolumeSourceImageIO struct {
	// URL of the oVirt engine.
	URL string `json:"url"`
	// DiskID is the disk.
	DiskID string `json:"diskId"`
	// SecretRef is the Secret with user name and password.
	// +optional
	SecretRef string `json:"secretRef,omitempty"`
	// CertConfigMap is the ConfigMap with the engine's certificate authority.
	// +optional
	CertConfigMap string `json:"certConfigMap,omitempty"`
	// InsecureSkipVerify trusts any certificate. Default: false.
	// +optional
	InsecureSkipVerify *bool `json:"insecureSkipVerify,omitempty"`
}

// DataVolumeSourceVDDK is a disk of vSphere.
type DataVolumeSourceVDDK struct {
	// URL of the vCenter or ESXi.
	// +optional
	URL string `json:"url,omitempty"`
	// UUID of vSphere's VM that the disk is from.
	// +optional
	UUID string `json:"uuid,omitempty"`
	// BackingFile is the path of the disk.
	// +optional
	BackingFile string `json:"backingFile,omitempty"`
	// Thumbprint of the server's certificate.
	// +optional
	Thumbprint string `json:"thumbprint,omitempty"`
	// SecretRef is the Secret with user name and password.
	// +optional
	SecretRef string `json:"secretRef,omitempty"`
	// InitImageURL is the image with VMware's library.
	// +optional
	InitImageURL string `json:"initImageURL,omitempty"`
	// ExtraArgs is the ConfigMap with further arguments.
	// +optional
	ExtraArgs string `json:"extraArgs,omitempty"`
}

// DataVolumeSourceRef names a DataSource.
type DataVolumeSourceRef struct {
	// Kind is DataSource.
	Kind string `json:"kind"`
	// Name of the DataSource.
	Name string `json:"name"`
	// Namespace of the DataSource. Default: the VM's.
	// +optional
	Namespace *string `json:"namespace,omitempty"`
}

// DataVolumeCheckpoint is a step of an import in several steps.
type DataVolumeCheckpoint struct {
	// Previous is the snapshot that the step begins at, "" for the first.
	Previous string `json:"previous"`
	// Current is the snapshot that the step ends at.
	Current string `json:"current"`
}

// DataVolumeStorage is a claim with what follows from its storage class left
// out.
type DataVolumeStorage struct {
	// AccessModes are the ways in which the claim can be mounted. Default: what
	// the storage class is best at.
	// +optional
	// +listType=atomic
	AccessModes []corev1.PersistentVolumeAccessMode `json:"accessModes,omitempty"`
	// Selector chooses among existing volumes.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// Resources is the size that the disk needs.
	// +optional
	Resources corev1.VolumeResourceRequirements `json:"resources,omitzero"`
	// VolumeName is the volume that the claim is bound to.
	// +optional
	VolumeName string `json:"volumeName,omitempty"`
	// StorageClassName is the storage class. Default: the cluster's.
	// +optional
	StorageClassName *string `json:"storageClassName,omitempty"`
	// VolumeMode is Filesystem or Block. Default: what the storage class is best
	// at.
	// +optional
	VolumeMode *corev1.PersistentVolumeMode `json:"volumeMode,omitempty"`
	// DataSource is what the claim is made from.
	// +optional
	DataSource *corev1.TypedLocalObjectReference `json:"dataSource,omitempty"`
	// DataSourceRef is what the claim is made from, in any namespace.
	// +optional
	DataSourceRef *corev1.TypedObjectReference `json:"dataSourceRef,omitempty"`
}
