package instancetype

import "github.com/podvisor/podvisor/vmi"

// DevicePreferences are for the devices of a VMI.
type DevicePreferences struct {
	// PreferredAutoattachGraphicsDevice adds a graphics card and a VNC screen.
	// +optional
	PreferredAutoattachGraphicsDevice *bool `json:"preferredAutoattachGraphicsDevice,omitempty"`

	// PreferredAutoattachMemBalloon adds a balloon.
	// +optional
	PreferredAutoattachMemBalloon *bool `json:"preferredAutoattachMemBalloon,omitempty"`

	// PreferredAutoattachPodInterface adds an interface on the pod network to a VMI
	// that lists none.
	// +optional
	PreferredAutoattachPodInterface *bool `json:"preferredAutoattachPodInterface,omitempty"`

	// PreferredAutoattachSerialConsole adds a serial console.
	// +optional
	PreferredAutoattachSerialConsole *bool `json:"preferredAutoattachSerialConsole,omitempty"`

	// PreferredAutoattachInputDevice adds a tablet to a VMI that lists no inputs.
	// +optional
	PreferredAutoattachInputDevice *bool `json:"preferredAutoattachInputDevice,omitempty"`

	// PreferredDisableHotplug replaces what the VMI says of hotplug.
	// +optional
	PreferredDisableHotplug *bool `json:"preferredDisableHotplug,omitempty"`

	// PreferredUseVirtioTransitional makes virtio devices support the legacy protocol.
	// +optional
	PreferredUseVirtioTransitional *bool `json:"preferredUseVirtioTransitional,omitempty"`

	// PreferredBlockMultiQueue gives each disk on the virtio bus as many queues as there
	// are processors.
	// +optional
	PreferredBlockMultiQueue *bool `json:"preferredBlockMultiQueue,omitempty"`

	// PreferredNetworkInterfaceMultiQueue gives each virtio interface as many queues as
	// there are processors.
	// +optional
	PreferredNetworkInterfaceMultiQueue *bool `json:"preferredNetworkInterfaceMultiQueue,omitempty"`

	// PreferredDiskBus is the bus of disks.
	// +optional
	PreferredDiskBus vmi.DiskBus `json:"preferredDiskBus,omitempty"`

	// PreferredCdromBus is the bus of CD-ROM drives.
	// +optional
	PreferredCdromBus vmi.DiskBus `json:"preferredCdromBus,omitempty"`

	// PreferredLunBus is the bus of LUNs.
	// +optional
	PreferredLunBus vmi.DiskBus `json:"preferredLunBus,omitempty"`

	// PreferredDiskDedicatedIoThread gives each disk on the virtio bus an I/O thread.
	// +optional
	PreferredDiskDedicatedIoThread *bool `json:"preferredDiskDedicatedIoThread,omitempty"`

	// PreferredDiskCache is what the node's page cache does for disks.
	// +optional
	PreferredDiskCache vmi.DiskCache `json:"preferredDiskCache,omitempty"`

	// PreferredDiskIO is how the node reads and writes disks.
	// +optional
	PreferredDiskIO vmi.DiskIO `json:"preferredDiskIO,omitempty"`

	// PreferredDiskBlockSize is the size of the blocks of disks.
	// +optional
	PreferredDiskBlockSize *vmi.BlockSize `json:"preferredDiskBlockSize,omitempty"`

	// PreferredInputBus is the bus of the VMI's inputs. It adds none.
	// +optional
	PreferredInputBus vmi.InputBus `json:"preferredInputBus,omitempty"`

	// PreferredInputType is the type of the VMI's inputs. It adds none.
	// +optional
	PreferredInputType vmi.InputType `json:"preferredInputType,omitempty"`

	// PreferredInterfaceModel is the model of network interfaces.
	// +optional
	PreferredInterfaceModel vmi.InterfaceModel `json:"preferredInterfaceModel,omitempty"`

	// PreferredInterfaceMasquerade binds interfaces without a binding to the pod network
	// by masquerade.
	// +optional
	PreferredInterfaceMasquerade *vmi.InterfaceMasquerade `json:"preferredInterfaceMasquerade,omitempty"`

	// PreferredSoundModel is the model of the VMI's sound card. It adds none.
	// +optional
	PreferredSoundModel vmi.SoundModel `json:"preferredSoundModel,omitempty"`

	// PreferredRng adds a source of random numbers.
	// +optional
	PreferredRng *vmi.Rng `json:"preferredRng,omitempty"`

	// PreferredTPM adds a trusted platform module.
	// +optional
	PreferredTPM *vmi.TPM `json:"preferredTPM,omitempty"`

	// PreferredVideoType is the graphics card.
	// +optional
	PreferredVideoType string `json:"preferredVideoType,omitempty"`

	// PreferredPanicDeviceModel is the model of panic devices without one. A VMI without
	// a panic device gets one.
	// +optional
	PreferredPanicDeviceModel *vmi.PanicDeviceModel `json:"preferredPanicDeviceModel,omitempty"`
}
