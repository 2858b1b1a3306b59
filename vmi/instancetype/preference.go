package instancetype

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
)

// VirtualMachinePreference is what the VMs of its namespace that name it get where they
// leave something open.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=vmpref;vmprefs;vmp;vmps,categories=all
type VirtualMachinePreference struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is preferred. A change reaches only VMs that use it for the first
	// time later.
	Spec VirtualMachinePreferenceSpec `json:"spec"`
}

// VirtualMachinePreferenceList is a list of VirtualMachinePreferences.
//
// +kubebuilder:object:root=true
type VirtualMachinePreferenceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []VirtualMachinePreference `json:"items"`
}

// VirtualMachineClusterPreference is what the VMs of any namespace that name it get where
// they leave something open.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=vmcp;vmcps
type VirtualMachineClusterPreference struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is preferred. A change reaches only VMs that use it for the first
	// time later.
	Spec VirtualMachinePreferenceSpec `json:"spec"`
}

// VirtualMachineClusterPreferenceList is a list of VirtualMachineClusterPreferences.
//
// +kubebuilder:object:root=true
type VirtualMachineClusterPreferenceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []VirtualMachineClusterPreference `json:"items"`
}

// VirtualMachinePreferenceSpec is what a VMI gets where its template and its instance type
// leave something open.
type VirtualMachinePreferenceSpec struct {
	// Clock is for the guest's clock and timers.
	// +optional
	Clock *ClockPreferences `json:"clock,omitempty"`

	// CPU is for the processor.
	// +optional
	CPU *CPUPreferences `json:"cpu,omitempty"`

	// Devices is for the devices.
	// +optional
	Devices *DevicePreferences `json:"devices,omitempty"`

	// Features is for parts of the machine type and of the hypervisor.
	// +optional
	Features *FeaturePreferences `json:"features,omitempty"`

	// Firmware is for what runs before the guest's operating system.
	// +optional
	Firmware *FirmwarePreferences `json:"firmware,omitempty"`

	// MachineType is for the machine type.
	// +optional
	MachineType *MachineTypePreferences `json:"machine,omitempty"`

	// Volumes is for the dataVolumeTemplates of the VM.
	// +optional
	Volumes *VolumePreferences `json:"volumes,omitempty"`

	// PreferredSubdomain is the subdomain.
	// +optional
	PreferredSubdomain *string `json:"preferredSubdomain,omitempty"`

	// PreferredTerminationGracePeriodSeconds is how long the guest may take to power
	// off.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	PreferredTerminationGracePeriodSeconds *int64 `json:"preferredTerminationGracePeriodSeconds,omitempty"`

	// Requirements are what a VM must have that names the preference.
	// +optional
	Requirements *PreferenceRequirements `json:"requirements,omitempty"`

	// Annotations are put on the VMI.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// PreferSpreadSocketToCoreRatio is cpu.spreadOptions.ratio by its older name.
	// +optional
	PreferSpreadSocketToCoreRatio uint32 `json:"preferSpreadSocketToCoreRatio,omitempty"`

	// PreferredArchitecture is the architecture of the guest. Only amd64 works yet.
	// +optional
	PreferredArchitecture *string `json:"preferredArchitecture,omitempty"`

	// PreferredLaunchSecurity keeps the guest's memory from the node.
	// +optional
	PreferredLaunchSecurity *vmi.LaunchSecurity `json:"preferredLaunchSecurity,omitempty"`
}

// Topology is how the processors of an instance type are divided.
//
// +podvisor:enum
type Topology string

// The topologies. The zero value stands for sockets. The older name of each is the same
// with prefer before it.
const (
	TopologySockets Topology = "sockets"
	TopologyCores   Topology = "cores"
	TopologyThreads Topology = "threads"
	// TopologySpread divides them by cpu.spreadOptions.
	TopologySpread Topology = "spread"
	// TopologyAny makes sockets, and counts what a template divides otherwise too.
	TopologyAny Topology = "any"

	FormerTopologySockets Topology = "preferSockets"
	FormerTopologyCores   Topology = "preferCores"
	FormerTopologyThreads Topology = "preferThreads"
	FormerTopologySpread  Topology = "preferSpread"
	FormerTopologyAny     Topology = "preferAny"
)

// SpreadAcross is what processors are divided among.
//
// +podvisor:enum
type SpreadAcross string

// What processors are divided among. The zero value stands for SocketsCores.
const (
	SpreadSocketsCores        SpreadAcross = "SocketsCores"
	SpreadCoresThreads        SpreadAcross = "CoresThreads"
	SpreadSocketsCoresThreads SpreadAcross = "SocketsCoresThreads"
)

// CPUPreferences are for the processor.
type CPUPreferences struct {
	// PreferredCPUTopology is how the processors of the instance type are divided:
	// sockets, cores, threads, spread or any. Default: sockets.
	// +optional
	PreferredCPUTopology *Topology `json:"preferredCPUTopology,omitempty"`

	// SpreadOptions are for the topology spread.
	// +optional
	SpreadOptions *SpreadOptions `json:"spreadOptions,omitempty"`

	// PreferredCPUFeatures are added to those of the VMI, unless it names them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	PreferredCPUFeatures []vmi.CPUFeature `json:"preferredCPUFeatures,omitempty"`
}

// SpreadOptions are for the topology spread.
type SpreadOptions struct {
	// Across is what the processors are divided among: SocketsCores, CoresThreads or
	// SocketsCoresThreads. A core has two threads. Default: SocketsCores.
	// +optional
	Across *SpreadAcross `json:"across,omitempty"`

	// Ratio is how many cores a socket has, or threads a core. Default: 2, the only one
	// across CoresThreads.
	// +optional
	Ratio *uint32 `json:"ratio,omitempty"`
}

// ClockPreferences are for the guest's clock and timers.
type ClockPreferences struct {
	// PreferredClockOffset is what the clock shows, if the VMI says nothing of it.
	// +optional
	PreferredClockOffset *vmi.ClockOffset `json:"preferredClockOffset,omitempty"`

	// PreferredTimer are the timers, if the VMI names none.
	// +optional
	PreferredTimer *vmi.Timer `json:"preferredTimer,omitempty"`
}

// FeaturePreferences are for parts of the machine type and of the hypervisor.
type FeaturePreferences struct {
	// PreferredAcpi replaces what the VMI says of ACPI.
	// +optional
	PreferredAcpi *vmi.FeatureState `json:"preferredAcpi,omitempty"`

	// PreferredApic is the interrupt controller of each processor.
	// +optional
	PreferredApic *vmi.FeatureAPIC `json:"preferredApic,omitempty"`

	// PreferredHyperv are interfaces of Hyper-V, each if the VMI does not name it.
	// +optional
	PreferredHyperv *vmi.FeatureHyperv `json:"preferredHyperv,omitempty"`

	// PreferredKvm is how the hypervisor shows itself.
	// +optional
	PreferredKvm *vmi.FeatureKVM `json:"preferredKvm,omitempty"`

	// PreferredPvspinlock lets a processor that waits for a lock give way.
	// +optional
	PreferredPvspinlock *vmi.FeatureState `json:"preferredPvspinlock,omitempty"`

	// PreferredSmm is the system management mode.
	// +optional
	PreferredSmm *vmi.FeatureState `json:"preferredSmm,omitempty"`
}

// FirmwarePreferences are for what runs before the guest's operating system.
type FirmwarePreferences struct {
	// PreferredUseBios chooses BIOS, if the VMI chooses nothing.
	// +optional
	PreferredUseBios *bool `json:"preferredUseBios,omitempty"`

	// PreferredUseBiosSerial lets the BIOS print on the serial console.
	// +optional
	PreferredUseBiosSerial *bool `json:"preferredUseBiosSerial,omitempty"`

	// PreferredEfi chooses UEFI with these settings, if the VMI chooses nothing. The two
	// fields below then mean nothing.
	// +optional
	PreferredEfi *vmi.EFI `json:"preferredEfi,omitempty"`

	// PreferredUseEfi chooses UEFI.
	// +optional
	PreferredUseEfi *bool `json:"preferredUseEfi,omitempty"`

	// PreferredUseSecureBoot has UEFI start only what is signed.
	// +optional
	PreferredUseSecureBoot *bool `json:"preferredUseSecureBoot,omitempty"`
}

// MachineTypePreferences are for the machine type.
type MachineTypePreferences struct {
	// PreferredMachineType is the machine type.
	// +optional
	PreferredMachineType string `json:"preferredMachineType,omitempty"`
}

// VolumePreferences are for the dataVolumeTemplates of a VM.
type VolumePreferences struct {
	// PreferredStorageClassName is the storage class of templates that name none. An
	// empty name in a template stays.
	// +optional
	PreferredStorageClassName string `json:"preferredStorageClassName,omitempty"`
}

// PreferenceRequirements are what a VM must have that names a preference.
type PreferenceRequirements struct {
	// CPU is for the processors.
	// +optional
	CPU *CPURequirement `json:"cpu,omitempty"`

	// Memory is for the memory.
	// +optional
	Memory *MemoryRequirement `json:"memory,omitempty"`

	// Architecture is the architecture that the VM must have.
	// +optional
	Architecture *string `json:"architecture,omitempty"`
}

// CPURequirement is how many processors a VM must have.
type CPURequirement struct {
	// Guest is the least number of processors.
	Guest uint32 `json:"guest"`
}

// MemoryRequirement is how much memory a VM must have.
type MemoryRequirement struct {
	// Guest is the least amount of memory.
	Guest resource.Quantity `json:"guest"`
}
