package vmi

// Disk is a disk of a machine. It shows the volume of the same name.
type Disk struct {
	// Name is the name of the volume that this disk shows.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// Disk is a read-write disk. Default, if no other kind is named.
	// +optional
	Disk *DiskTarget `json:"disk,omitempty"`

	// Serial is the serial number that the guest sees.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_.+-]+$`
	Serial string `json:"serial,omitempty"`

	// BootOrder is the position in which the firmware tries this disk, counted
	// from 1. Disks without one are tried in the order of the list if no device
	// has one, and not at all otherwise.
	// +optional
	// +kubebuilder:validation:Minimum=1
	BootOrder *uint `json:"bootOrder,omitempty"`
}

// DiskBus is the bus that a disk is attached to.
//
// +kubebuilder:validation:Enum=virtio;sata;scsi
type DiskBus string

// The buses of a disk. The zero value stands for the default, SATA.
const (
	DiskBusVirtio DiskBus = "virtio"
	DiskBusSATA   DiskBus = "sata"
	DiskBusSCSI   DiskBus = "scsi"
)

// DiskTarget is a read-write disk as the guest sees it.
type DiskTarget struct {
	// Bus is the bus that the disk is attached to: virtio (the fastest), sata or
	// scsi. Default: sata.
	// +optional
	Bus DiskBus `json:"bus,omitempty"`
}
