package vmi

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// VolumeStatus is an observed volume.
type VolumeStatus struct {
	// Name is the volume's name in the spec.
	Name string `json:"name"`
	// Target is the disk's name on its bus, for example vda.
	Target string `json:"target"`
	// Size is the disk's size in bytes.
	// +optional
	Size int64 `json:"size,omitempty"`

	// Phase is the progress of attaching the volume to the running guest or
	// detaching it.
	// +optional
	// +podvisor:unserved=nothing can be added to a running VMI yet
	Phase VolumePhase `json:"phase,omitempty"`
	// Reason is why the volume is in its phase, in one word.
	// +optional
	// +podvisor:unserved=nothing can be added to a running VMI yet
	Reason string `json:"reason,omitempty"`
	// Message is why the volume is in its phase, in a sentence.
	// +optional
	// +podvisor:unserved=nothing can be added to a running VMI yet
	Message string `json:"message,omitempty"`
	// PersistentVolumeClaimInfo describes the claim behind the volume, as it was when
	// the VMI was given to its node.
	// +optional
	PersistentVolumeClaimInfo *PersistentVolumeClaimInfo `json:"persistentVolumeClaimInfo,omitempty"`
	// HotplugVolume is set for a volume that was added to the running VMI.
	// +optional
	// +podvisor:unserved=nothing can be added to a running VMI yet
	HotplugVolume *HotplugVolumeStatus `json:"hotplugVolume,omitempty"`
	// ContainerDiskVolume identifies the container disk behind the volume.
	// +optional
	// +podvisor:unserved=container disks are not compared
	ContainerDiskVolume *BootFileInfo `json:"containerDiskVolume,omitempty"`
}

// VolumePhase is the progress of attaching or detaching a volume.
type VolumePhase string

// The phases of a volume, in order.
const (
	// VolumePhasePending: the volume is not attached to the node.
	VolumePhasePending VolumePhase = "Pending"
	// VolumePhaseBound: the claim is bound.
	VolumePhaseBound VolumePhase = "Bound"
	// VolumePhaseAttachedToNode: the volume is attached to the VMI's node.
	VolumePhaseAttachedToNode VolumePhase = "AttachedToNode"
	// VolumePhaseMounted: the volume is in the VMI's pod.
	VolumePhaseMounted VolumePhase = "MountedToPod"
	// VolumePhaseReady: the guest has the volume.
	VolumePhaseReady VolumePhase = "Ready"
	// VolumePhaseDetaching: the volume is being removed.
	VolumePhaseDetaching VolumePhase = "Detaching"
	// VolumePhaseUnmounted: the volume is out of the VMI's pod.
	VolumePhaseUnmounted VolumePhase = "UnMountedFromPod"
)

// HotplugVolumeStatus describes a volume that was added to a running VMI.
type HotplugVolumeStatus struct {
	// AttachPodName is the pod that holds the volume on the node.
	// +optional
	AttachPodName string `json:"attachPodName,omitempty"`
	// AttachPodUID is the UID of that pod.
	// +optional
	AttachPodUID types.UID `json:"attachPodUID,omitempty"`
}

// PersistentVolumeClaimInfo describes a claim.
type PersistentVolumeClaimInfo struct {
	// ClaimName is the name of the claim.
	// +optional
	ClaimName string `json:"claimName,omitempty"`
	// AccessModes are the ways in which the claim can be mounted.
	// +optional
	// +listType=atomic
	AccessModes []corev1.PersistentVolumeAccessMode `json:"accessModes,omitempty"`
	// VolumeMode is Filesystem or Block.
	// +optional
	VolumeMode *corev1.PersistentVolumeMode `json:"volumeMode,omitempty"`
	// Capacity is the size that the claim has.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
	// Requests is the size that the claim asks for.
	// +optional
	Requests corev1.ResourceList `json:"requests,omitempty"`
	// Preallocated says that all space of the disk is taken already.
	// +optional
	Preallocated bool `json:"preallocated,omitempty"`
	// FilesystemOverhead is the share of the claim that a file system needs for
	// itself, from 0 to 1.
	// +optional
	// +kubebuilder:validation:Pattern=`^(0(?:\.\d{1,3})?|1)$`
	FilesystemOverhead *string `json:"filesystemOverhead,omitempty"`
}

// MigratedVolume is a volume that moves from one claim to another.
type MigratedVolume struct {
	// VolumeName is the volume's name in the spec.
	VolumeName string `json:"volumeName"`
	// SourcePVCInfo describes the claim that the volume leaves.
	// +optional
	SourcePVCInfo *PersistentVolumeClaimInfo `json:"sourcePVCInfo,omitempty"`
	// DestinationPVCInfo describes the claim that the volume goes to.
	// +optional
	DestinationPVCInfo *PersistentVolumeClaimInfo `json:"destinationPVCInfo,omitempty"`
}
