package vmi

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// KubeVirtConfiguration holds the settings of a cluster.
type KubeVirtConfiguration struct {
	// CPUModel is the processor model of VMIs that name none: host-model,
	// host-passthrough, or a model by its name, which every node for VMIs should
	// have then. Default: host-model.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$`
	CPUModel string `json:"cpuModel,omitempty"`

	// ObsoleteCPUModels are the models of processors, by their names, that no guest
	// shall have: nodes get no label for them, and a node whose own processor counts
	// as one of them runs no VMI with host-model. It takes the place of the default:
	// 486, pentium, pentium2, pentium3, pentiumpro, coreduo, n270, core2duo, Conroe,
	// athlon, phenom, qemu64, qemu32, kvm64, kvm32, Opteron_G1 and Opteron_G2.
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	ObsoleteCPUModels map[string]bool `json:"obsoleteCPUModels,omitempty"`

	// CPURequest is what a VMI's pod asks for if the VMI names neither a CPU
	// request nor a limit. If it does not say what its processor looks like
	// either, the guest sees as many, rounded up. Default, and also what 100m
	// stands for: as cpuAllocationRatio says, and one processor.
	// +optional
	CPURequest *resource.Quantity `json:"cpuRequest,omitempty"`

	// DeprecatedMachineType is the old place of
	// architectureConfiguration.amd64.machineType, which wins over it.
	// +optional
	DeprecatedMachineType string `json:"machineType,omitempty"`

	// DeprecatedEmulatedMachines is the old place of
	// architectureConfiguration.amd64.emulatedMachines, which wins over it.
	// +optional
	// +listType=atomic
	DeprecatedEmulatedMachines []string `json:"emulatedMachines,omitempty"`

	// ArchitectureConfiguration are settings of each architecture.
	// +optional
	ArchitectureConfiguration *ArchitectureConfiguration `json:"architectureConfiguration,omitempty"`

	// Network are settings of the network.
	// +optional
	Network *NetworkConfiguration `json:"network,omitempty"`

	// ImagePullPolicy says when a node pulls the image of virt-launcher: Always,
	// IfNotPresent or Never. Container disks have their own. Default:
	// IfNotPresent, whatever the tag.
	// +optional
	// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`

	// VMStateStorageClass is the storage class of the claims for what outlasts VMIs
	// beside their disks: the variables of UEFI firmware and the state of TPMs, where
	// they are persistent. Claims that exist keep theirs. Default: the default storage
	// class of the cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	VMStateStorageClass string `json:"vmStateStorageClass,omitempty"`

	// EvictionStrategy is the strategy of VMIs that name none when they are
	// created. Default: None.
	// +optional
	EvictionStrategy *EvictionStrategy `json:"evictionStrategy,omitempty"`

	// AdditionalGuestMemoryOverheadRatio multiplies the memory that a pod is given
	// beside the guest's, as a decimal number of more than 0 and at most 100, for
	// example "1.2". Below 1 the kernel may kill VMIs that use all of their
	// memory. Default: 1.
	// +optional
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]*)?|\.[0-9]+)$`
	AdditionalGuestMemoryOverheadRatio *string `json:"additionalGuestMemoryOverheadRatio,omitempty"`

	// SupportedGuestAgentVersions are the versions of the guest's agent for which
	// a VMI does not get the condition AgentVersionNotSupported, as patterns such
	// as 5.*: * stands for any characters, ? for one and [45] for one of these,
	// and the whole version must match. They are no regular expressions. An agent
	// that does not report its version counts as supported. Default: 2.* and all
	// later ones, such as 7.2.22 or 107.0.1.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=63
	SupportedGuestAgentVersions []string `json:"supportedGuestAgentVersions,omitempty"`

	// PermittedHostDevices are the devices of nodes that VMIs may have, in gpus and
	// hostDevices. Default: none.
	// +optional
	PermittedHostDevices *PermittedHostDevices `json:"permittedHostDevices,omitempty"`

	// SMBIOS is what the guest reads about its hardware in the SMBIOS tables. VMIs
	// that run keep theirs.
	// +optional
	SMBIOS *SMBIOSConfiguration `json:"smbios,omitempty"`

	// MemBalloonStatsPeriod is the time between two measurements of the guest's
	// memory, in seconds; 0 measures nothing. QEMU takes them and libvirt, in the
	// launcher, shows them. VMIs that run keep theirs. Default: 10.
	// +optional
	MemBalloonStatsPeriod *uint32 `json:"memBalloonStatsPeriod,omitempty"`

	// MigrationConfiguration are the settings of migrations.
	// +optional
	MigrationConfiguration *MigrationConfiguration `json:"migrations,omitempty"`

	// LiveUpdateConfiguration limits what can be added to a running guest.
	// +optional
	// +podvisor:unserved=nothing can be added to a running VMI yet
	LiveUpdateConfiguration *LiveUpdateConfiguration `json:"liveUpdateConfiguration,omitempty"`

	// VMRolloutStrategy says when a change of a VirtualMachine takes effect: Stage
	// waits for its next start, LiveUpdate gives the running VMI what it can take.
	// Default: LiveUpdate.
	// +optional
	// +podvisor:unserved=nothing can be added to a running VMI yet
	VMRolloutStrategy *VMRolloutStrategy `json:"vmRolloutStrategy,omitempty"`

	// Instancetype is what becomes of VMs that name an instance type or a preference.
	// +optional
	Instancetype *InstancetypeConfiguration `json:"instancetype,omitempty"`

	// ControllerConfiguration are settings of virt-controller.
	// +optional
	ControllerConfiguration *ComponentConfiguration `json:"controllerConfiguration,omitempty"`

	// HandlerConfiguration are settings of virt-handler.
	// +optional
	HandlerConfiguration *ComponentConfiguration `json:"handlerConfiguration,omitempty"`

	// DeveloperConfiguration are settings that most clusters leave at their
	// defaults.
	// +optional
	DeveloperConfiguration *DeveloperConfiguration `json:"developerConfiguration,omitempty"`
}

// ArchitectureConfiguration are settings of each architecture.
type ArchitectureConfiguration struct {
	// DefaultArchitecture is the architecture of VMIs that name none: amd64 or arm64.
	// Default: amd64.
	// +optional
	// +podvisor:unservedValues=s390x,VMIs of this architecture do not run yet
	// +kubebuilder:validation:XValidation:rule="self in ['', 'amd64', 'arm64']",message="VMIs of this architecture do not run yet: set defaultArchitecture to amd64 or arm64, or leave it out"
	DefaultArchitecture string `json:"defaultArchitecture,omitempty"`

	// AMD64 are the settings of amd64.
	// +optional
	AMD64 *ArchitectureSettings `json:"amd64,omitempty"`

	// ARM64 are the settings of arm64.
	// +optional
	ARM64 *ArchitectureSettings `json:"arm64,omitempty"`

	// S390X are the settings of s390x.
	// +optional
	// +podvisor:unserved=VMIs of this architecture do not run yet
	S390X *ArchitectureSettings `json:"s390x,omitempty"`
}

// ArchitectureSettings are settings of one architecture.
type ArchitectureSettings struct {
	// MachineType is the machine type of VMIs that name none. It must be one of
	// emulatedMachines. VMIs that have a pod already keep theirs. Default: q35 on
	// amd64, virt on arm64, s390-ccw-virtio on s390x.
	// +optional
	MachineType string `json:"machineType,omitempty"`

	// EmulatedMachines are the machine types that VMIs may name, as patterns: a *
	// stands for any text, a ? for any character and [a-c] for one of a few. VMIs
	// that have a pod already keep their type. Default: q35* and pc-q35* on amd64,
	// virt* on arm64, s390-ccw-virtio* on s390x.
	// +optional
	// +listType=atomic
	EmulatedMachines []string `json:"emulatedMachines,omitempty"`
}

// NetworkConfiguration are settings of the network.
type NetworkConfiguration struct {
	// DefaultNetworkInterface is the binding of the interface of VMIs that list
	// none: bridge or masquerade. Default: bridge, or masquerade where bridge is
	// not permitted.
	// +optional
	// +kubebuilder:validation:Enum=bridge;masquerade
	DefaultNetworkInterface string `json:"defaultNetworkInterface,omitempty"`

	// PermitBridgeInterfaceOnPodNetwork allows the binding bridge on the pod
	// network, which keeps a VMI from migrating. VMIs that have a pod already keep
	// it. Default: true.
	// +optional
	PermitBridgeInterfaceOnPodNetwork *bool `json:"permitBridgeInterfaceOnPodNetwork,omitempty"`
}

// SMBIOSConfiguration is what a guest reads about its hardware, each field at
// most 64 printable ASCII characters.
type SMBIOSConfiguration struct {
	// Manufacturer of the hardware, by which guests recognise what they run on.
	// Default: KubeVirt.
	// +optional
	Manufacturer string `json:"manufacturer,omitempty"`
	// Product is the hardware's name. Default: None.
	// +optional
	Product string `json:"product,omitempty"`
	// Version of the hardware. Default: that of the machine type, as QEMU has it.
	// +optional
	Version string `json:"version,omitempty"`
	// Sku is the stock-keeping unit of the hardware. Default: none.
	// +optional
	Sku string `json:"sku,omitempty"`
	// Family of the hardware. Default: KubeVirt.
	// +optional
	Family string `json:"family,omitempty"`
}

// LiveUpdateConfiguration limits what can be added to a running guest.
type LiveUpdateConfiguration struct {
	// MaxHotplugRatio is how many times its own size a VMI can grow to, if it does
	// not say itself. Default: 4.
	// +optional
	MaxHotplugRatio uint32 `json:"maxHotplugRatio,omitempty"`

	// MaxCPUSockets is the number of sockets that a VMI can grow to.
	// +optional
	MaxCPUSockets *uint32 `json:"maxCpuSockets,omitempty"`

	// MaxGuest is the memory that a VMI can grow to.
	// +optional
	MaxGuest *resource.Quantity `json:"maxGuest,omitempty"`
}

// VMRolloutStrategy says when a change of a VirtualMachine takes effect.
//
// +podvisor:enum
type VMRolloutStrategy string

// The rollout strategies. The zero value stands for LiveUpdate.
const (
	RolloutStage      VMRolloutStrategy = "Stage"
	RolloutLiveUpdate VMRolloutStrategy = "LiveUpdate"
)

// InstancetypeConfiguration is what becomes of VMs that name an instance type or a preference.
type InstancetypeConfiguration struct {
	// ReferencePolicy is what a VM that is written becomes: reference keeps what it
	// names, expand writes what that says into its template instead, unless the VM has
	// used it, and expandAll does so always. Default: reference.
	// +optional
	ReferencePolicy *InstancetypeReferencePolicy `json:"referencePolicy,omitempty"`
}

// InstancetypeReferencePolicy is what becomes of VMs that name an instance type or a
// preference.
//
// +podvisor:enum
type InstancetypeReferencePolicy string

// The reference policies. The zero value stands for reference.
const (
	ReferencePolicyReference InstancetypeReferencePolicy = "reference"
	ReferencePolicyExpand    InstancetypeReferencePolicy = "expand"
	ReferencePolicyExpandAll InstancetypeReferencePolicy = "expandAll"
)

// ComponentConfiguration are settings of a component.
type ComponentConfiguration struct {
	// RestClient are settings of its connection to the API server.
	// +optional
	RestClient *RestClientConfiguration `json:"restClient,omitempty"`
}

// RestClientConfiguration are settings of a connection to the API server.
type RestClientConfiguration struct {
	// RateLimiter limits the requests.
	// +optional
	RateLimiter *RateLimiter `json:"rateLimiter,omitempty"`
}

// RateLimiter limits requests, except those that must not be delayed, such as
// leader election's. Default: 200 per second, and 400 at once.
type RateLimiter struct {
	// TokenBucketRateLimiter allows a burst of requests, and then a number per
	// second.
	// +optional
	TokenBucketRateLimiter *TokenBucketRateLimiter `json:"tokenBucketRateLimiter,omitempty"`
}

// TokenBucketRateLimiter allows a burst of requests, and then a number per
// second.
type TokenBucketRateLimiter struct {
	// QPS is the number of requests per second, at least 1.
	// +kubebuilder:validation:Minimum=1
	QPS float32 `json:"qps"`

	// Burst is the number of requests at once, at least 1.
	// +kubebuilder:validation:Minimum=1
	Burst int `json:"burst"`
}

// DeveloperConfiguration are settings that most clusters leave at their
// defaults.
type DeveloperConfiguration struct {
	// UseEmulation runs VMIs on any node and without hardware virtualization, also
	// where a node has it, which is much slower. VMIs that have a pod already keep
	// it. Default: what the flag -allow-emulation of virt-controller says.
	// +optional
	UseEmulation *bool `json:"useEmulation,omitempty"`

	// CPUAllocationRatio is how many processors of guests share one CPU of a node,
	// where VMIs name neither a CPU request nor a limit. Default: 10.
	// +optional
	// +kubebuilder:validation:Minimum=1
	CPUAllocationRatio int `json:"cpuAllocationRatio,omitempty"`

	// MemoryOvercommit is how much memory guests see for each 100 that their pods
	// ask for, where VMIs name neither a memory request nor a limit. Default: 100.
	// +optional
	// +kubebuilder:validation:Minimum=10
	MemoryOvercommit int `json:"memoryOvercommit,omitempty"`

	// NodeSelectors are labels that a node must have to run VMIs. A VMI's own
	// nodeSelector wins where both name a label, and its architecture wins over
	// kubernetes.io/arch. VMIs that have a pod already keep their nodes.
	// +optional
	NodeSelectors map[string]string `json:"nodeSelectors,omitempty"`

	// LessPVCSpaceToleration is by how many per cent a claim may be smaller than
	// the disk in it. Default: 10.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=99
	LessPVCSpaceToleration int `json:"pvcTolerateLessSpaceUpToPercent,omitempty"`

	// MinimumReservePVCBytes is the space of a claim, in bytes, that a new disk
	// leaves free. Default: 131072.
	// +optional
	// +kubebuilder:validation:Maximum=1125899906842624
	MinimumReservePVCBytes uint64 `json:"minimumReservePVCBytes,omitempty"`

	// DiskVerification are settings of the check of disk images.
	// +optional
	DiskVerification *DiskVerification `json:"diskVerification,omitempty"`

	// FeatureGates are KubeVirt's names of features that are off by default. HostDisk
	// allows disks in files of the node, PortRangesSpec ranges of ports, VSOCK sockets
	// between guests and their nodes, WorkloadEncryptionSEV guests with encrypted
	// memory. A name of a feature that is on in any case, or that Podvisor does not
	// have, changes nothing.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=256
	FeatureGates []string `json:"featureGates,omitempty"`

	// LogVerbosity says how much the components log.
	// +optional
	LogVerbosity *LogVerbosity `json:"logVerbosity,omitempty"`
}

// DiskVerification are settings of the check of disk images.
type DiskVerification struct {
	// MemoryLimit is the memory that the process that checks an image may use. Less
	// than 64Mi counts as 64Mi. Default: 128Mi.
	MemoryLimit *resource.Quantity `json:"memoryLimit"`
}

// LogVerbosity says how much the components log: 1 and 2 log changes, more also
// what did not change and why; 0 is the default.
type LogVerbosity struct {
	// VirtController is for virt-controller. Default: what its flag
	// -log-level says.
	// +optional
	VirtController uint `json:"virtController,omitempty"`
	// VirtHandler is for virt-handler. Default: what its flag
	// -log-level says.
	// +optional
	VirtHandler uint `json:"virtHandler,omitempty"`
	// VirtLauncher is for virt-launcher, also of VMIs that run. Default: 2.
	// +optional
	VirtLauncher uint `json:"virtLauncher,omitempty"`
	// NodeVerbosity is for virt-handler on single nodes, by their names. It wins
	// over virtHandler.
	// +optional
	NodeVerbosity map[string]uint `json:"nodeVerbosity,omitempty"`
}

// PermittedHostDevices are devices of nodes that VMIs may have. They are offered by
// device plugins of their own, as the resources that are named here.
type PermittedHostDevices struct {
	// PCIHostDevices are PCI devices.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	PCIHostDevices []PCIHostDevice `json:"pciHostDevices,omitempty"`

	// MediatedDevices are mediated devices, such as parts of a GPU.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	MediatedDevices []MediatedHostDevice `json:"mediatedDevices,omitempty"`
}

// PCIHostDevice is a kind of PCI devices.
//
// +kubebuilder:validation:XValidation:rule="has(self.externalResourceProvider) && self.externalResourceProvider",message="virt-handler offers no PCI devices: install a device plugin for the resource and set externalResourceProvider to true",fieldPath=".externalResourceProvider"
type PCIHostDevice struct {
	// PCIVendorSelector is the vendor and the product of the devices, for example
	// 10DE:1EB8. The device plugin decides what it offers.
	// +kubebuilder:validation:MaxLength=63
	PCIVendorSelector string `json:"pciVendorSelector"`

	// ResourceName is the resource that the device plugin offers.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ResourceName string `json:"resourceName"`

	// ExternalResourceProvider says that a device plugin beside virt-handler offers
	// the resource. Required to be true.
	// +optional
	ExternalResourceProvider bool `json:"externalResourceProvider,omitempty"`
}

// MediatedHostDevice is a kind of mediated devices.
//
// +kubebuilder:validation:XValidation:rule="has(self.externalResourceProvider) && self.externalResourceProvider",message="virt-handler offers no mediated devices: install a device plugin for the resource and set externalResourceProvider to true",fieldPath=".externalResourceProvider"
type MediatedHostDevice struct {
	// MDEVNameSelector is the type of the devices, for example GRID T4-1Q. The
	// device plugin decides what it offers.
	// +kubebuilder:validation:MaxLength=63
	MDEVNameSelector string `json:"mdevNameSelector"`

	// ResourceName is the resource that the device plugin offers.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ResourceName string `json:"resourceName"`

	// ExternalResourceProvider says that a device plugin beside virt-handler offers
	// the resource. Required to be true.
	// +optional
	ExternalResourceProvider bool `json:"externalResourceProvider,omitempty"`
}
