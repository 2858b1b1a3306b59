package vmi

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// VirtualMachineInstanceStatus is an observed VMI. virt-controller writes it
// until the phase is Scheduled, virt-handler from then on.
type VirtualMachineInstanceStatus struct {
	// Phase is where the VMI is in its life cycle.
	// +optional
	Phase Phase `json:"phase,omitempty"`

	// PhaseTransitionTimestamps say when each phase began.
	// +optional
	// +listType=atomic
	PhaseTransitionTimestamps []PhaseTransitionTimestamp `json:"phaseTransitionTimestamps,omitempty"`

	// Reason is why the VMI has ended or is not ready, in one word, for example
	// ErrImagePull or NodeUnresponsive. The message of the condition Ready says more.
	// It is empty while nothing is wrong.
	// +optional
	Reason string `json:"reason,omitempty"`

	// NodeName is the node that the VMI runs on.
	// +optional
	NodeName string `json:"nodeName,omitempty"`

	// ActivePods maps the UIDs of the VMI's active pods to their nodes. There are
	// two while it migrates.
	// +optional
	ActivePods map[types.UID]string `json:"activePods,omitempty"`

	// Conditions are facts about the VMI.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`

	// Interfaces are the guest's network interfaces.
	// +optional
	// +listType=atomic
	Interfaces []InterfaceStatus `json:"interfaces,omitempty"`

	// VolumeStatus says how each volume is attached.
	// +optional
	// +listType=atomic
	VolumeStatus []VolumeStatus `json:"volumeStatus,omitempty"`

	// KernelBootStatus identifies what the guest was started with by
	// firmware.kernelBoot. Nil: nothing of it, or it does not run yet.
	// +optional
	KernelBootStatus *KernelBootStatus `json:"kernelBootStatus,omitempty"`

	// Memory is the VMI's memory.
	// +optional
	Memory *MemoryStatus `json:"memory,omitempty"`

	// Machine is the machine type that the guest runs on, in full: never an alias
	// such as q35, but the version that it stood for when the guest was started.
	// +optional
	Machine *Machine `json:"machine,omitempty"`

	// CurrentCPUTopology is the processor topology that the guest sees.
	// +optional
	CurrentCPUTopology *CPUTopology `json:"currentCPUTopology,omitempty"`

	// GuestReboots counts how often the guest rebooted or was reset since it was
	// started, which changes neither the VMI nor its pod. A guest that reboots again
	// and again is counted in steps. Nil: it did not.
	// +optional
	GuestReboots *GuestOccurrences `json:"guestReboots,omitempty"`

	// GuestPanics counts how often the kernel of the guest crashed, which only a
	// guest with one of domain.devices.panicDevices reports. Nil: it did not.
	// +optional
	GuestPanics *GuestOccurrences `json:"guestPanics,omitempty"`

	// VSOCKCID is the guest's number (CID) in the addresses of vsock sockets on its
	// node, if it has autoattachVSOCK. Guests of other nodes may have the same number,
	// and the VMI may have another at its next start. Nil: it has no such device, or
	// it does not run yet.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4294967295
	// +kubebuilder:validation:Type=integer
	// +kubebuilder:validation:Format=int64
	// +optional
	VSOCKCID *uint32 `json:"VSOCKCID,omitempty"`

	// QOSClass is the quality-of-service class of the VMI's pod.
	// +optional
	QOSClass *corev1.PodQOSClass `json:"qosClass,omitempty"`

	// LauncherContainerImageVersion is the image of the VMI's pod.
	// +optional
	LauncherContainerImageVersion string `json:"launcherContainerImageVersion,omitempty"`

	// RuntimeUser is the user ID that QEMU runs as.
	// +optional
	RuntimeUser uint64 `json:"runtimeUser,omitempty"`

	// SELinuxContext is the SELinux context that QEMU runs in.
	// +optional
	// +podvisor:unserved=the pod's context is not read
	SELinuxContext string `json:"selinuxContext,omitempty"`

	// GuestOSInfo is what the guest's agent reports about its operating system.
	// +optional
	// +podvisor:unserved=the guest's agent is not queried for it
	GuestOSInfo GuestOSInfo `json:"guestOSInfo,omitzero"`

	// FSFreezeStatus is "frozen" while the guest's file systems are frozen by the verb
	// freeze.
	// +optional
	FSFreezeStatus string `json:"fsFreezeStatus,omitempty"`

	// EvacuationNodeName is the node that the VMI has to leave, since an eviction was
	// refused because of its evictionStrategy. With LiveMigrate and LiveMigrateIfPossible
	// it is migrated; with External another controller acts on it. It is empty again
	// when the VMI has left, or by the verb evacuate/cancel.
	// +optional
	EvacuationNodeName string `json:"evacuationNodeName,omitempty"`

	// MigrationState is the VMI's current or last migration.
	// +optional
	MigrationState *MigrationState `json:"migrationState,omitempty"`

	// MigrationMethod says how the VMI would migrate: LiveMigration, if its
	// volumes are shared, or BlockMigration, which copies them.
	// +optional
	MigrationMethod MigrationMethod `json:"migrationMethod,omitempty"`

	// MigrationTransport is Unix if the data of a migration go through sockets
	// in the pod.
	// +optional
	// +podvisor:unserved=it is the only one: what migrates goes through sockets of the launcher
	MigrationTransport MigrationTransport `json:"migrationTransport,omitempty"`

	// MigratedVolumes are volumes that a migration copies to other claims.
	// +optional
	// +listType=atomic
	// +podvisor:unserved=no volume moves to another claim
	MigratedVolumes []MigratedVolume `json:"migratedVolumes,omitempty"`

	// TopologyHints limit the nodes that the VMI can migrate to.
	// +optional
	// +podvisor:unserved=no guest relies on the rate of its node's time stamp counter
	TopologyHints *TopologyHints `json:"topologyHints,omitempty"`

	// VirtualMachineRevisionName is the ControllerRevision of the VirtualMachine's
	// spec that this VMI was started from.
	// +optional
	VirtualMachineRevisionName string `json:"virtualMachineRevisionName,omitempty"`
}

// TopologyHints limit the nodes that a VMI can migrate to.
type TopologyHints struct {
	// TSCFrequency is the rate of the time stamp counter that the guest relies
	// on, in hertz.
	// +optional
	TSCFrequency *int64 `json:"tscFrequency,omitempty"`
}

// GuestOSInfo is what a guest's agent reports about its operating system.
type GuestOSInfo struct {
	// Name of the operating system, for example Fedora Linux.
	// +optional
	Name string `json:"name,omitempty"`
	// KernelRelease is the kernel's release, for example 6.11.4-301.fc41.x86_64.
	// +optional
	KernelRelease string `json:"kernelRelease,omitempty"`
	// Version of the operating system, for people.
	// +optional
	Version string `json:"version,omitempty"`
	// PrettyName is name and version, for people.
	// +optional
	PrettyName string `json:"prettyName,omitempty"`
	// VersionID is the version of the operating system, for programs.
	// +optional
	VersionID string `json:"versionId,omitempty"`
	// KernelVersion is the kernel's version and build.
	// +optional
	KernelVersion string `json:"kernelVersion,omitempty"`
	// Machine is the architecture, as the guest names it.
	// +optional
	Machine string `json:"machine,omitempty"`
	// ID is the operating system's name, for programs, for example fedora.
	// +optional
	ID string `json:"id,omitempty"`
}

// Condition returns the condition of type t, or nil if the VMI has none.
func (s *VirtualMachineInstanceStatus) Condition(t ConditionType) *Condition {
	return FindCondition(s.Conditions, t)
}

// SetCondition sets the condition of c's type to c. The transition time is
// kept if the status does not change and is now otherwise.
func (s *VirtualMachineInstanceStatus) SetCondition(c Condition, now metav1.Time) {
	s.Conditions = SetCondition(s.Conditions, c, now)
}

// RemoveCondition removes the condition of type t, if there is one.
func (s *VirtualMachineInstanceStatus) RemoveCondition(t ConditionType) {
	s.Conditions = RemoveCondition(s.Conditions, t)
}

// SetPhase makes p the phase and records when it began. It does nothing if p is
// the phase already. Of a phase that begins again only the last time is kept.
func (s *VirtualMachineInstanceStatus) SetPhase(p Phase, now metav1.Time) {
	if s.Phase == p {
		return
	}
	s.Phase = p
	s.PhaseTransitionTimestamps = slices.DeleteFunc(s.PhaseTransitionTimestamps, func(t PhaseTransitionTimestamp) bool { return t.Phase == p })
	s.PhaseTransitionTimestamps = append(s.PhaseTransitionTimestamps, PhaseTransitionTimestamp{Phase: p, PhaseTransitionTimestamp: now})
}

// GuestOccurrences counts what a guest did.
type GuestOccurrences struct {
	// Count is how often since the guest was started.
	Count int64 `json:"count"`

	// LastTimestamp is when virt-handler observed that the count had risen.
	LastTimestamp metav1.Time `json:"lastTimestamp"`
}

// Evacuate says that the VMI has to leave the node, or with an empty one that it has not.
func (s *VirtualMachineInstanceStatus) Evacuate(node string, now metav1.Time) {
	s.EvacuationNodeName = node
	if node == "" {
		s.RemoveCondition(ConditionEvictionRequested)
		return
	}
	s.SetCondition(Condition{Type: ConditionEvictionRequested, Status: corev1.ConditionTrue, Reason: string(ConditionEvictionRequested),
		Message: "the eviction of the pod was asked for, and the VMI has to leave node " + node}, now)
}
