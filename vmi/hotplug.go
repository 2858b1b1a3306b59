package vmi

// VolumeRequest asks for a volume to be added or removed.
type VolumeRequest struct {
	// AddVolumeOptions adds a volume.
	// +optional
	AddVolumeOptions *AddVolumeOptions `json:"addVolumeOptions,omitempty"`
	// RemoveVolumeOptions removes a volume.
	// +optional
	RemoveVolumeOptions *RemoveVolumeOptions `json:"removeVolumeOptions,omitempty"`
}

// AddVolumeOptions is a volume to be added to a running VMI.
type AddVolumeOptions struct {
	// Name is the name of the disk and of the volume.
	Name string `json:"name"`
	// Disk is the disk that shows the volume. Its bus must be scsi or virtio.
	Disk *Disk `json:"disk"`
	// VolumeSource is the volume.
	VolumeSource *HotplugVolumeSource `json:"volumeSource"`
	// DryRun holds All if the request is only to be checked.
	// +optional
	// +listType=atomic
	DryRun []string `json:"dryRun,omitempty"`
}

// RemoveVolumeOptions is a volume to be removed from a running VMI.
type RemoveVolumeOptions struct {
	// Name is the name of the volume.
	Name string `json:"name"`
	// DryRun holds All if the request is only to be checked.
	// +optional
	// +listType=atomic
	DryRun []string `json:"dryRun,omitempty"`
}

// HotplugVolumeSource is a volume that can be added to a running VMI: exactly
// one field is set.
type HotplugVolumeSource struct {
	// PersistentVolumeClaim is a claim of the VMI's namespace.
	// +optional
	PersistentVolumeClaim *PersistentVolumeClaimVolume `json:"persistentVolumeClaim,omitempty"`
	// DataVolume is the claim of a DataVolume.
	// +optional
	DataVolume *DataVolumeVolume `json:"dataVolume,omitempty"`
}
