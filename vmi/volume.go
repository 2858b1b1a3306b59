package vmi

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Volume is the source of a disk or of a file system: exactly one of its kinds
// is set.
//
// +podvisor:exactlyOne:of=containerDisk;persistentVolumeClaim;dataVolume;cloudInitNoCloud;cloudInitConfigDrive;emptyDisk;ephemeral;hostDisk;configMap;secret;downwardAPI;serviceAccount;sysprep,message="a volume has exactly one source"
type Volume struct {
	// Name is the volume's name. The disk or file system of the same name shows
	// it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	VolumeSource `json:",inline"`
}

// VolumeSource is what a volume is made of. Exactly one field is set. The trait
// "filesystem" says that the guest can have a volume as a file system.
type VolumeSource struct {
	// ContainerDisk is a disk image in a container image. What the guest writes is
	// lost when the VMI ends.
	// +optional
	ContainerDisk *ContainerDisk `json:"containerDisk,omitempty"`

	// PersistentVolumeClaim is a claim of the VMI's namespace. In block mode the
	// disk is the device; in file system mode it is the file disk.img, which is
	// made as large as the claim if it is missing. What the guest writes stays. A
	// claim that does not exist keeps the VMI from starting.
	// +optional
	PersistentVolumeClaim *PersistentVolumeClaimVolume `json:"persistentVolumeClaim,omitempty" traits:"filesystem"`

	// DataVolume is the claim that a DataVolume of the same name fills. The VMI
	// waits until it is filled.
	// +optional
	DataVolume *DataVolumeVolume `json:"dataVolume,omitempty" traits:"filesystem"`

	// CloudInitNoCloud is a disk with cloud-init's NoCloud data source. A VMI has
	// at most one cloud-init volume; a second is refused.
	// +optional
	CloudInitNoCloud *CloudInitNoCloud `json:"cloudInitNoCloud,omitempty"`

	// CloudInitConfigDrive is a disk with cloud-init's ConfigDrive data source. A
	// VMI has at most one cloud-init volume; a second is refused.
	// +optional
	CloudInitConfigDrive *CloudInitConfigDrive `json:"cloudInitConfigDrive,omitempty"`

	// EmptyDisk is an empty disk that is lost when the VMI ends.
	// +optional
	EmptyDisk *EmptyDisk `json:"emptyDisk,omitempty"`

	// Ephemeral is a claim whose content is only read: what the guest writes goes
	// to the node and is lost when the VMI ends.
	// +optional
	Ephemeral *EphemeralVolume `json:"ephemeral,omitempty"`

	// HostDisk is a disk image in a file of the node. It is off unless the
	// cluster's configuration allows it, since it gives every user who can create
	// a VMI the node's disk.
	// +optional
	HostDisk *HostDisk `json:"hostDisk,omitempty"`

	// ConfigMap shows the keys of a ConfigMap as files, as they are when the VMI
	// starts.
	// +optional
	ConfigMap *ConfigMapVolume `json:"configMap,omitempty" traits:"filesystem"`

	// Secret shows the keys of a Secret as files, as they are when the VMI starts.
	// +optional
	Secret *SecretVolume `json:"secret,omitempty" traits:"filesystem"`

	// DownwardAPI shows facts about the pod as files, as they are when the VMI
	// starts.
	// +optional
	DownwardAPI *DownwardAPIVolume `json:"downwardAPI,omitempty" traits:"filesystem"`

	// ServiceAccount shows the token of a service account as a file. A VMI has at
	// most one.
	// +optional
	ServiceAccount *ServiceAccountVolume `json:"serviceAccount,omitempty" traits:"filesystem"`

	// Sysprep is a CD-ROM with the answer files of Windows' setup.
	// +optional
	Sysprep *Sysprep `json:"sysprep,omitempty"`
}

// Kinds are the kinds of the source, by their names in JSON: one, if the volume is right.
func (s *VolumeSource) Kinds() []string { return set(*s) }

// FilesystemKinds are the kinds of volumes that the guest can have as a file system.
func FilesystemKinds() []string { return having[VolumeSource]("filesystem") }

// Claim is the name of the claim that the volume is in, or "" if it is in none.
func (s *VolumeSource) Claim() string {
	switch {
	case s.PersistentVolumeClaim != nil:
		return s.PersistentVolumeClaim.ClaimName
	case s.DataVolume != nil:
		return s.DataVolume.Name
	case s.Ephemeral != nil && s.Ephemeral.PersistentVolumeClaim != nil:
		return s.Ephemeral.PersistentVolumeClaim.ClaimName
	}
	return ""
}

// ContainerDisk is a disk image in a container image: the one file in its
// folder /disk, or the file at Path.
type ContainerDisk struct {
	// Image is the reference of the container image. One that cannot be pulled
	// keeps the VMI from starting.
	// +kubebuilder:validation:MinLength=1
	Image string `json:"image"`

	// ImagePullPolicy says when the image is pulled: Always, IfNotPresent or
	// Never. Default: Always if the image has the tag latest or none, otherwise
	// IfNotPresent.
	// +optional
	// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`

	// ImagePullSecret is the name of the Secret of the VMI's namespace with which
	// the image is pulled. One that does not exist is ignored: the image is pulled
	// without it, if it can be.
	// +optional
	ImagePullSecret string `json:"imagePullSecret,omitempty"`

	// Path is the absolute path of the disk image in the container image; symbolic
	// links are not followed. Default: the one file in /disk. An image without it,
	// or with several files in /disk, fails the VMI.
	// +optional
	// +kubebuilder:validation:Pattern=`^/`
	Path string `json:"path,omitempty"`
}

// PersistentVolumeClaimVolume is a volume in a claim.
type PersistentVolumeClaimVolume struct {
	corev1.PersistentVolumeClaimVolumeSource `json:",inline"`

	// Hotpluggable says that the volume was added to the running VMI and can be
	// removed from it. Default: false.
	// +optional
	// +podvisor:unserved=nothing can be added to a running VMI yet
	Hotpluggable bool `json:"hotpluggable,omitempty"`
}

// DataVolumeVolume is a volume in the claim of a DataVolume.
type DataVolumeVolume struct {
	// Name is the name of the DataVolume and of its claim.
	Name string `json:"name"`

	// Hotpluggable says that the volume was added to the running VMI and can be
	// removed from it. Default: false.
	// +optional
	// +podvisor:unserved=nothing can be added to a running VMI yet
	Hotpluggable bool `json:"hotpluggable,omitempty"`
}

// EphemeralVolume is a claim that is only read, below a layer that is lost.
type EphemeralVolume struct {
	// PersistentVolumeClaim is the claim. It must be set.
	// +optional
	PersistentVolumeClaim *corev1.PersistentVolumeClaimVolumeSource `json:"persistentVolumeClaim,omitempty"`
}

// EmptyDisk is an empty disk.
type EmptyDisk struct {
	// Capacity is the size of the disk, for example 2Gi: more than 0, and rounded
	// up to whole sectors of 512 bytes. It takes the node's space as the guest
	// writes.
	Capacity resource.Quantity `json:"capacity"`
}

// MaxDiskBytes is the size of the largest disk that is accepted: 1 PiB. QEMU takes
// more, but a table of its size is written and read for each disk.
const MaxDiskBytes = 1 << 50

// HostDisk is a disk image in a file of the node.
//
// +kubebuilder:validation:XValidation:rule="!has(self.capacity) || self.type == 'DiskOrCreate'",message="capacity is only for type DiskOrCreate: an existing disk has its size",fieldPath=".capacity"
type HostDisk struct {
	// Path is the absolute path of the file on the node. Its folder must exist, and
	// user 107 must be able to use both.
	Path string `json:"path"`

	// Type is Disk, for a file that must be there, or DiskOrCreate, for one that
	// is made if it is not.
	Type HostDiskType `json:"type"`

	// Capacity is the size of a file that is made, for example 10Gi. Type
	// DiskOrCreate needs it.
	// +optional
	Capacity *resource.Quantity `json:"capacity,omitempty"`

	// Shared says that the path is the same on all nodes, so that the VMI can be
	// migrated. Default: false.
	// +optional
	// +podvisor:unserved=nothing checks that the file is the same on all nodes
	Shared *bool `json:"shared,omitempty"`
}

// HostDiskType says whether a file of the node is made if it is missing.
//
// +podvisor:enum
type HostDiskType string

// The types of a host disk.
const (
	HostDiskExists         HostDiskType = "Disk"
	HostDiskExistsOrCreate HostDiskType = "DiskOrCreate"
)

// ConfigMapVolume shows the keys of a ConfigMap as files.
type ConfigMapVolume struct {
	corev1.LocalObjectReference `json:",inline"`

	// Optional lets the VMI start without the ConfigMap. Default: false, so the
	// VMI waits for it.
	// +optional
	Optional *bool `json:"optional,omitempty"`

	// VolumeLabel is the label of the disk, by which the guest finds it: up to 32
	// printable characters of ASCII. Default: cfgdata.
	// +optional
	VolumeLabel string `json:"volumeLabel,omitempty"`
}

// SecretVolume shows the keys of a Secret as files.
type SecretVolume struct {
	// SecretName is the name of the Secret in the VMI's namespace.
	// +optional
	SecretName string `json:"secretName,omitempty"`

	// Optional lets the VMI start without the Secret. Default: false, so the VMI
	// waits for it.
	// +optional
	Optional *bool `json:"optional,omitempty"`

	// VolumeLabel is the label of the disk, by which the guest finds it: up to 32
	// printable characters of ASCII. Default: cfgdata.
	// +optional
	VolumeLabel string `json:"volumeLabel,omitempty"`
}

// DownwardAPIVolume shows facts about the pod as files.
type DownwardAPIVolume struct {
	// Fields are the files and the facts in them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	// +podvisor:refused:user=KubeVirt's API does not have the field
	Fields []corev1.DownwardAPIVolumeFile `json:"fields,omitempty"`

	// VolumeLabel is the label of the disk, by which the guest finds it: up to 32
	// printable characters of ASCII. Default: cfgdata.
	// +optional
	VolumeLabel string `json:"volumeLabel,omitempty"`
}

// ServiceAccountVolume shows the token of a service account as a file.
type ServiceAccountVolume struct {
	// ServiceAccountName is the name of the service account in the VMI's
	// namespace. The pod runs as it.
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
}

// Sysprep is a CD-ROM with the answer files of Windows' setup: exactly one
// source is set.
//
// +podvisor:exactlyOne:of=secret;configMap,message="sysprep has exactly one source"
type Sysprep struct {
	// Secret holds the files Autounattend.xml and Unattend.xml.
	// +optional
	Secret *corev1.LocalObjectReference `json:"secret,omitempty"`

	// ConfigMap holds the files Autounattend.xml and Unattend.xml.
	// +optional
	ConfigMap *corev1.LocalObjectReference `json:"configMap,omitempty"`
}
