package vmi

import "slices"

// Devices are the devices of a domain.
//
// +kubebuilder:validation:XValidation:rule="!has(self.video) || !has(self.autoattachGraphicsDevice) || self.autoattachGraphicsDevice",message="video needs a graphics device: set autoattachGraphicsDevice to true, or leave video out",fieldPath=".video"
type Devices struct {
	// Disks are the VMI's disks. Each shows the volume of the same name. A disk
	// without a volume is refused; a volume that neither a disk nor a file system
	// shows gets a disk.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	Disks []Disk `json:"disks,omitempty"`

	// Interfaces are the VMI's network interfaces. Each is attached to the
	// network of the same name. Default: one interface on the pod network.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	Interfaces []Interface `json:"interfaces,omitempty"`

	// Filesystems are volumes that the guest mounts as file systems. Each shows
	// the volume of the same name.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Filesystems []Filesystem `json:"filesystems,omitempty"`

	// Inputs are the VMI's pointing devices.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Inputs []Input `json:"inputs,omitempty"`

	// GPUs are graphics processors of the node that the guest has for itself.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	GPUs []GPU `json:"gpus,omitempty"`

	// HostDevices are other devices of the node that the guest has for itself.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	HostDevices []HostDevice `json:"hostDevices,omitempty"`

	// Rng gives the guest a source of random numbers, fed by the node's.
	// Default: none.
	// +optional
	Rng *Rng `json:"rng,omitempty"`

	// Watchdog acts when the guest stops resetting its timer.
	// +optional
	Watchdog *Watchdog `json:"watchdog,omitempty"`

	// PanicDevices are devices by which the guest's kernel reports that it crashed.
	// The guest ends then and the VMI becomes Failed: it does not reboot by itself,
	// whatever its own settings say. Default: none, and a guest that crashed is not
	// distinguished from one that runs.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4
	PanicDevices []PanicDevice `json:"panicDevices,omitempty"`

	// Sound is the VMI's sound card. What it plays is discarded. Default: none.
	// +optional
	Sound *Sound `json:"sound,omitempty"`

	// TPM is a trusted platform module, which keeps keys from the guest's own
	// software. Windows 11 needs one.
	// +optional
	TPM *TPM `json:"tpm,omitempty"`

	// Video chooses the graphics card. Default: vga on amd64 with BIOS, bochs
	// with UEFI, virtio on other architectures.
	// +optional
	Video *Video `json:"video,omitempty"`

	// AutoattachPodInterface adds an interface on the pod network to a VMI that
	// lists neither interfaces nor networks. Default: true.
	// +optional
	AutoattachPodInterface *bool `json:"autoattachPodInterface,omitempty"`

	// AutoattachGraphicsDevice gives the VMI a graphics card and a VNC screen.
	// Default: true.
	// +optional
	AutoattachGraphicsDevice *bool `json:"autoattachGraphicsDevice,omitempty"`

	// AutoattachSerialConsole gives the VMI a serial console, which virtctl
	// console connects to. Default: true.
	// +optional
	AutoattachSerialConsole *bool `json:"autoattachSerialConsole,omitempty"`

	// LogSerialConsole writes what the guest prints on its serial console to the
	// log of the pod. Default: true.
	// +optional
	LogSerialConsole *bool `json:"logSerialConsole,omitempty"`

	// AutoattachMemBalloon gives the domain a balloon, by which the guest's memory
	// is measured and can be reclaimed. Default: true.
	// +optional
	AutoattachMemBalloon *bool `json:"autoattachMemBalloon,omitempty"`

	// AutoattachInputDevice gives the VMI a tablet, so that the pointers of
	// the VNC client and of the guest are at the same place. Default: false.
	// +optional
	AutoattachInputDevice *bool `json:"autoattachInputDevice,omitempty"`

	// BlockMultiQueue gives each disk on the virtio bus as many queues as there
	// are processors. Default: false.
	// +optional
	BlockMultiQueue *bool `json:"blockMultiQueue,omitempty"`

	// NetworkInterfaceMultiQueue gives each virtio interface as many queues as
	// there are processors. Default: false.
	// +optional
	NetworkInterfaceMultiQueue *bool `json:"networkInterfaceMultiqueue,omitempty"`

	// UseVirtioTransitional makes virtio devices support the legacy protocol as
	// well, for guests without the modern one, such as CentOS 6. Default: false.
	// +optional
	UseVirtioTransitional *bool `json:"useVirtioTransitional,omitempty"`

	// AutoattachVSOCK gives the VMI a vsock device: sockets between programs in the
	// guest and programs on its node, without a network. The guest's number is in
	// status.VSOCKCID. It needs the feature gate VSOCK, and a node with the device
	// /dev/vhost-vsock. Default: false.
	// +optional
	AutoattachVSOCK *bool `json:"autoattachVSOCK,omitempty"`

	// DisableHotplug leaves out what disks and interfaces that are attached while the
	// guest runs need: spare PCI ports, and a SCSI controller without a disk. Default:
	// false.
	// +optional
	DisableHotplug bool `json:"disableHotplug,omitempty"`
}

const mib = 1 << 20

// Traits are those of the parts of a VMI. The caller may change the slice.
func Traits() []Trait {
	return []Trait{
		{
			// The graphics card has 16 MiB of memory, which the guest fills when it draws.
			Part: "devices.autoattachGraphicsDevice", MemoryBytes: 16 * mib,
			Has: devicesHave(func(d *Devices) bool { return d.AutoattachGraphicsDevice == nil || *d.AutoattachGraphicsDevice }),
		},
		{
			// 3.7 MB of QEMU's memory for the firmware's code and 2 MB for variables and
			// tables; what is translated of it is in the cache, of which it fills 14 MB more
			// than a BIOS.
			Part: "firmware.bootloader.efi", MemoryBytes: 8 * mib,
			Has:      func(v *VirtualMachineInstance) bool { return v.Spec.Domain.UEFI() != nil },
			StateDir: func(d *DomainSpec) string { return folder(NVRAMDir, d.UEFI().Persists()) },
		},
		{
			// swtpm is 6.9 MB resident when the firmware has measured into it, of which 1 MB
			// is its own.
			Part: "devices.tpm", MemoryBytes: 8 * mib,
			Has:      devicesHave(func(d *Devices) bool { return d.TPM.On() }),
			StateDir: func(d *DomainSpec) string { return folder(TPMDir, d.Devices.TPM.Persists()) },
		},
		{
			// The node's devices are mapped into QEMU and into the tables of the IOMMU; none
			// was measured, so it is what KubeVirt asks for, however many there are.
			Part: "devices.hostDevices", MemoryBytes: 1024 * mib,
			Has:   devicesHave((*Devices).ofTheNode),
			Stays: ReasonHostDeviceNotLiveMigratable, Why: "the guest has a device of its node",
		},
		{
			Part:  "devices.filesystems",
			Has:   devicesHave(func(d *Devices) bool { return len(d.Filesystems) > 0 }),
			Stays: ReasonVirtIOFSNotLiveMigratable, Why: "the guest has a file system whose server is in its pod",
		},
		{
			Part: "devices.autoattachVSOCK", Resource: VhostVSOCKResource,
			Has: devicesHave(func(d *Devices) bool { return d.AutoattachVSOCK != nil && *d.AutoattachVSOCK }),
		},
		{
			// Not measured either: it is what KubeVirt asks for.
			Part: "launchSecurity.sev", MemoryBytes: 256 * mib, Resource: SEVResource,
			Has:   func(v *VirtualMachineInstance) bool { return v.Spec.Domain.LaunchSecurity.EncryptsMemory() },
			Stays: ReasonSEVNotLiveMigratable, Why: "the memory of the guest is encrypted by the processor of its node",
		},
		{
			Part: "features.hypervPassthrough",
			Has: func(v *VirtualMachineInstance) bool {
				f := v.Spec.Domain.Features
				return f != nil && f.HypervPassthrough != nil && (f.HypervPassthrough.Enabled == nil || *f.HypervPassthrough.Enabled)
			},
			Stays: ReasonHypervPassthroughNotLiveMigratable, Why: "the guest has all interfaces of Hyper-V that its node has",
		},
	}
}

func devicesHave(part func(*Devices) bool) func(*VirtualMachineInstance) bool {
	return func(v *VirtualMachineInstance) bool { return part(&v.Spec.Domain.Devices) }
}

// ofTheNode says that the guest has devices of the node for itself.
func (d *Devices) ofTheNode() bool {
	return len(d.GPUs)+len(d.HostDevices) > 0 || slices.ContainsFunc(d.Interfaces, func(i Interface) bool { return i.IsDevice() })
}

// folder is the folder, if something is kept in it.
func folder(dir string, kept bool) string {
	if !kept {
		return ""
	}
	return dir
}

// Rng is a virtio random number generator.
type Rng struct{}

// Filesystem is a volume that the guest mounts as a file system.
type Filesystem struct {
	// Name is the name of the volume, and the tag by which the guest mounts it:
	// mount -t virtiofs NAME /somewhere.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// Virtiofs shares the volume by virtio-fs.
	Virtiofs *FilesystemVirtiofs `json:"virtiofs"`
}

// FilesystemVirtiofs has no settings.
type FilesystemVirtiofs struct{}

// Input is a pointing device.
type Input struct {
	// Name is the device's name, unique in the VMI.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// Type is what the device is: tablet.
	Type InputType `json:"type"`

	// Bus is the bus that the device is attached to: virtio or usb. Default: usb.
	// +optional
	Bus InputBus `json:"bus,omitempty"`
}

// InputType is what an input device is.
//
// +podvisor:enum
type InputType string

// InputTablet is a pointing device with absolute positions.
const InputTablet InputType = "tablet"

// InputBus is the bus that an input device is attached to.
//
// +podvisor:enum
type InputBus string

// The buses of an input device. The zero value stands for usb.
const (
	InputBusUSB    InputBus = "usb"
	InputBusVirtio InputBus = "virtio"
)

// Sound is a sound card.
type Sound struct {
	// Name is the device's name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// Model is the card: ich9 or ac97. Default: ich9.
	// +optional
	Model SoundModel `json:"model,omitempty"`
}

// SoundModel is a sound card that a guest sees.
//
// +podvisor:enum
type SoundModel string

// The sound cards. The zero value stands for ich9.
const (
	SoundICH9 SoundModel = "ich9"
	SoundAC97 SoundModel = "ac97"
)

// TPM is a trusted platform module of version 2.
type TPM struct {
	// Enabled says whether the VMI has the module. Default, if tpm is named: true.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// Persistent keeps what the module stores on a volume of its own, so that it
	// outlasts the VMI. Default: false.
	// +optional
	Persistent *bool `json:"persistent,omitempty"`
}

// Video is a graphics card.
type Video struct {
	// Type is the card: vga, cirrus, virtio, bochs or ramfb, as far as the VMI's
	// architecture has it.
	// +optional
	Type string `json:"type,omitempty"`
}
