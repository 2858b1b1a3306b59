package vmi

// Disk is a disk of a VMI. It shows the volume of the same name.
//
// +podvisor:atMostOne:of=disk;cdrom;lun,message="a disk is at most one of"
type Disk struct {
	// Name is the name of the volume that this disk shows. A VMI without a volume
	// of that name is refused.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// Disk is a disk as guests know it. Default, if no other kind is named.
	// +optional
	Disk *DiskTarget `json:"disk,omitempty"`

	// CDRom is a CD-ROM drive with the volume in it.
	// +optional
	CDRom *CDRomTarget `json:"cdrom,omitempty"`

	// LUN is a SCSI device whose commands reach the node's device: the guest can
	// send more than reads and writes. Its volume must be a claim in block mode.
	// +optional
	LUN *LunTarget `json:"lun,omitempty"`

	// BootOrder says which disk the guest is started from: the one with the
	// lowest number, counted from 1. If no disk has one, it is the first of the
	// list. The BIOS tries no other: from a disk that cannot be started from it
	// does not go on to the next. Two disks with the same number are refused.
	// +optional
	// +kubebuilder:validation:Minimum=1
	BootOrder *uint `json:"bootOrder,omitempty"`

	// Serial is the serial number that the guest sees, by which it finds the
	// disk below /dev/disk/by-id. On virtio and sata it sees the first 20
	// characters only. Default: none, and QEMU's own on sata.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_.+-]+$`
	Serial string `json:"serial,omitempty"`

	// Cache says what the node's page cache does: none goes around it,
	// writethrough reads from it and writes to the disk at once, writeback
	// writes to it and to the disk when the guest flushes. Default: none where
	// the volume can do without a cache, otherwise writethrough.
	// +optional
	Cache DiskCache `json:"cache,omitempty"`

	// IO is how the node reads and writes: native, with the kernel's
	// asynchronous I/O, or threads. Default: native where the volume can do it.
	// +optional
	IO DiskIO `json:"io,omitempty"`

	// DedicatedIOThread gives the disk an I/O thread that no other disk uses. It
	// needs the bus virtio. Default: false.
	// +optional
	DedicatedIOThread *bool `json:"dedicatedIOThread,omitempty"`

	// ErrorPolicy says what happens when the volume fails: stop pauses the guest,
	// report returns the error to the guest, ignore returns success, enospace
	// pauses if the volume is full and reports otherwise. Default: stop.
	// +optional
	ErrorPolicy *DiskErrorPolicy `json:"errorPolicy,omitempty"`

	// BlockSize is the size of the blocks that the guest sees. Default: 512
	// bytes.
	// +optional
	BlockSize *BlockSize `json:"blockSize,omitempty"`

	// Shareable lets other VMIs write to the volume at the same time. The guests
	// must know how to do that, for example by a cluster file system. Default:
	// false.
	// +optional
	Shareable *bool `json:"shareable,omitempty"`

	// Tag reaches the guest with the disk's address and serial number, in the file
	// meta_data.json of cloud-init's configuration drive.
	// +optional
	Tag string `json:"tag,omitempty"`
}

// DiskBus is the bus that a disk is attached to.
//
// +podvisor:enum
type DiskBus string

// The buses of a disk. The zero value stands for the default: SATA on amd64,
// virtio on other architectures.
const (
	DiskBusVirtio DiskBus = "virtio"
	DiskBusSATA   DiskBus = "sata"
	DiskBusSCSI   DiskBus = "scsi"
	DiskBusUSB    DiskBus = "usb"
)

// DiskTarget is a disk as the guest sees it.
type DiskTarget struct {
	// Bus is the bus that the disk is attached to. virtio is the fastest and needs
	// a driver in the guest. Default: sata on amd64, virtio elsewhere.
	// +optional
	Bus DiskBus `json:"bus,omitempty"`

	// ReadOnly stops the guest from writing. Disks on the bus sata cannot be
	// read-only. Default: false.
	// +optional
	ReadOnly bool `json:"readonly,omitempty"`

	// PciAddress is the disk's address on the guest's PCI bus, for example
	// 0000:06:00.0: device 0 behind one of the guest's ports, each of which has a bus
	// of its own, or a free one of bus 00. It needs the bus virtio. Default: by the
	// disk's target.
	// +optional
	PciAddress string `json:"pciAddress,omitempty"`
}

// CDRomTarget is a CD-ROM drive as the guest sees it.
type CDRomTarget struct {
	// Bus is the bus that the drive is attached to: sata, scsi or usb; virtio has
	// no drives. Default: sata on amd64, scsi elsewhere.
	// +optional
	Bus DiskBus `json:"bus,omitempty"`

	// ReadOnly says what is true of every drive: the guest cannot write. Default:
	// true.
	// +optional
	ReadOnly *bool `json:"readonly,omitempty"`

	// Tray is the drive's tray when the guest starts. Default: closed.
	// +optional
	Tray TrayState `json:"tray,omitempty"`
}

// TrayState is the tray of a CD-ROM drive.
//
// +podvisor:enum
type TrayState string

// The states of a tray. The zero value stands for closed.
const (
	// +podvisor:unserved=QEMU starts every drive with its tray closed
	TrayOpen   TrayState = "open"
	TrayClosed TrayState = "closed"
)

// LunTarget is a SCSI device as the guest sees it.
type LunTarget struct {
	// Bus is the bus that the device is attached to. Only devices on scsi take SCSI
	// commands: a VMI with another bus fails. Default: scsi.
	// +optional
	Bus DiskBus `json:"bus,omitempty"`

	// ReadOnly stops the guest from writing. Default: false.
	// +optional
	ReadOnly bool `json:"readonly,omitempty"`

	// Reservation passes SCSI persistent reservations on, by which guests of a
	// cluster fence each other. Default: false.
	// +optional
	// +podvisor:unserved=no helper for persistent reservations runs on the node
	Reservation bool `json:"reservation,omitempty"`
}

// DiskCache is what the node's page cache does for a disk.
//
// +podvisor:enum
type DiskCache string

// The cache modes. The zero value stands for the best that the volume can do.
const (
	DiskCacheNone         DiskCache = "none"
	DiskCacheWriteThrough DiskCache = "writethrough"
	DiskCacheWriteBack    DiskCache = "writeback"
)

// DiskIO is how the node reads and writes a disk.
//
// +podvisor:enum
type DiskIO string

// The ways of I/O. The zero value stands for the best that the volume can do.
const (
	DiskIONative  DiskIO = "native"
	DiskIOThreads DiskIO = "threads"
)

// DiskErrorPolicy says what happens when a volume fails.
//
// +podvisor:enum
type DiskErrorPolicy string

// The error policies. Where none is named, it is stop.
const (
	DiskErrorPolicyStop     DiskErrorPolicy = "stop"
	DiskErrorPolicyIgnore   DiskErrorPolicy = "ignore"
	DiskErrorPolicyReport   DiskErrorPolicy = "report"
	DiskErrorPolicyENOSPACE DiskErrorPolicy = "enospace"
)

// BlockSize is the size of a disk's blocks: at most one field is set.
//
// +podvisor:atMostOne:of=custom;matchVolume,message="a block size is one of"
type BlockSize struct {
	// Custom names the sizes.
	// +optional
	Custom *CustomBlockSize `json:"custom,omitempty"`

	// MatchVolume takes the sizes of the volume's own blocks.
	// +optional
	MatchVolume *FeatureState `json:"matchVolume,omitempty"`
}

// CustomBlockSize names the sizes of a disk's blocks, in bytes: powers of two
// from 512 to 2097152.
type CustomBlockSize struct {
	// Logical is the smallest piece that the guest reads or writes. It must be
	// 512 on the bus sata.
	// +optional
	Logical uint `json:"logical,omitempty"`

	// Physical is the piece that the disk writes at once, at least logical.
	// +optional
	Physical uint `json:"physical,omitempty"`

	// DiscardGranularity is the smallest piece that the guest can give back, a
	// multiple of logical. Default: the volume's.
	// +optional
	DiscardGranularity *uint `json:"discardGranularity,omitempty"`
}
