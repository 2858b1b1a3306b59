package vmi

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Volume is the source of a disk: exactly one of its kinds is set.
//
// +kubebuilder:validation:XValidation:rule="(has(self.containerDisk)?1:0)+(has(self.cloudInitNoCloud)?1:0)+(has(self.emptyDisk)?1:0)==1",message="a volume has exactly one source: containerDisk, cloudInitNoCloud or emptyDisk"
type Volume struct {
	// Name is the volume's name. The disk of the same name shows it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	VolumeSource `json:",inline"`
}

// VolumeSource is what a volume is made of. Exactly one field is set.
type VolumeSource struct {
	// ContainerDisk is a disk image in a container image. What the guest writes
	// is lost when the machine ends.
	// +optional
	ContainerDisk *ContainerDisk `json:"containerDisk,omitempty"`

	// CloudInitNoCloud is a disk with cloud-init's NoCloud data source.
	// +optional
	CloudInitNoCloud *CloudInitNoCloud `json:"cloudInitNoCloud,omitempty"`

	// EmptyDisk is an empty disk that is lost when the machine ends.
	// +optional
	EmptyDisk *EmptyDisk `json:"emptyDisk,omitempty"`
}

// ContainerDisk is a disk image in a container image: the one file in its
// folder /disk, or the file at Path.
type ContainerDisk struct {
	// Image is the reference of the container image.
	// +kubebuilder:validation:MinLength=1
	Image string `json:"image"`

	// ImagePullPolicy says when the image is pulled. Default: Always if the
	// image has the tag latest or none, otherwise IfNotPresent.
	// +optional
	// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`

	// ImagePullSecret is the name of the Secret with which the image is pulled.
	// +optional
	ImagePullSecret string `json:"imagePullSecret,omitempty"`

	// Path is the absolute path of the disk image in the container image.
	// Default: the one file in /disk.
	// +optional
	// +kubebuilder:validation:Pattern=`^/`
	Path string `json:"path,omitempty"`
}

// CloudInitNoCloud is the data of cloud-init's NoCloud data source, which the
// guest finds on a disk labelled cidata.
//
// +kubebuilder:validation:XValidation:rule="has(self.userData) || has(self.userDataBase64) || has(self.networkData) || has(self.networkDataBase64)",message="cloudInitNoCloud needs userData or networkData (or one of them in base64)"
// +kubebuilder:validation:XValidation:rule="!(has(self.userData) && has(self.userDataBase64))",message="userData and userDataBase64 exclude each other"
// +kubebuilder:validation:XValidation:rule="!(has(self.networkData) && has(self.networkDataBase64))",message="networkData and networkDataBase64 exclude each other"
type CloudInitNoCloud struct {
	// UserData is the user data: a script that begins with #!, or YAML that
	// begins with #cloud-config. At most 2048 bytes.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	UserData string `json:"userData,omitempty"`

	// UserDataBase64 is the user data in base64.
	// +optional
	// +kubebuilder:validation:MaxLength=2732
	UserDataBase64 string `json:"userDataBase64,omitempty"`

	// NetworkData is the network configuration, version 1 or 2. At most 2048
	// bytes.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	NetworkData string `json:"networkData,omitempty"`

	// NetworkDataBase64 is the network configuration in base64.
	// +optional
	// +kubebuilder:validation:MaxLength=2732
	NetworkDataBase64 string `json:"networkDataBase64,omitempty"`
}

// EmptyDisk is an empty disk.
type EmptyDisk struct {
	// Capacity is the size of the disk, for example 2Gi.
	Capacity resource.Quantity `json:"capacity"`
}
