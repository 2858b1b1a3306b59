package vmi

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// VirtualMachineInstanceStatus is a machine as it is. virt-controller writes it
// until the phase is Scheduled, virt-handler from then on.
type VirtualMachineInstanceStatus struct {
	// Phase is where the machine is in its life.
	// +optional
	Phase Phase `json:"phase,omitempty"`

	// PhaseTransitionTimestamps say when each phase began.
	// +optional
	// +listType=atomic
	PhaseTransitionTimestamps []PhaseTransitionTimestamp `json:"phaseTransitionTimestamps,omitempty"`

	// Reason says in one word why the machine is in its phase, if that needs a
	// reason.
	// +optional
	Reason string `json:"reason,omitempty"`

	// NodeName is the node that the machine runs on.
	// +optional
	NodeName string `json:"nodeName,omitempty"`

	// ActivePods maps the UIDs of the machine's live pods to their nodes.
	// +optional
	ActivePods map[types.UID]string `json:"activePods,omitempty"`

	// Conditions are facts about the machine.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`

	// Interfaces are the machine's network interfaces.
	// +optional
	// +listType=atomic
	Interfaces []InterfaceStatus `json:"interfaces,omitempty"`

	// VolumeStatus says how each volume is attached.
	// +optional
	// +listType=atomic
	VolumeStatus []VolumeStatus `json:"volumeStatus,omitempty"`

	// Memory is the machine's memory.
	// +optional
	Memory *MemoryStatus `json:"memory,omitempty"`

	// Machine is the machine type that the guest runs on.
	// +optional
	Machine *Machine `json:"machine,omitempty"`

	// CurrentCPUTopology is the processor topology that the guest sees.
	// +optional
	CurrentCPUTopology *CPUTopology `json:"currentCPUTopology,omitempty"`

	// QOSClass is the quality-of-service class of the machine's pod.
	// +optional
	QOSClass *corev1.PodQOSClass `json:"qosClass,omitempty"`

	// LauncherContainerImageVersion is the image of the machine's pod.
	// +optional
	LauncherContainerImageVersion string `json:"launcherContainerImageVersion,omitempty"`

	// RuntimeUser is the user ID that the machine runs as.
	// +optional
	RuntimeUser uint64 `json:"runtimeUser,omitempty"`
}

// Phase is where a machine is in its life.
type Phase string

// The phases, in order. Succeeded and Failed are final.
const (
	// PhaseUnset is the phase of a machine that no controller has seen yet.
	PhaseUnset Phase = ""
	// Pending: the machine has no pod yet.
	Pending Phase = "Pending"
	// Scheduling: the pod exists and waits for a node or for its start.
	Scheduling Phase = "Scheduling"
	// Scheduled: the pod runs on its node and the node's handler takes over.
	Scheduled Phase = "Scheduled"
	// Running: the guest runs, or is paused.
	Running Phase = "Running"
	// Succeeded: the guest powered off.
	Succeeded Phase = "Succeeded"
	// Failed: the machine could not start, crashed or was switched off because
	// the guest did not power off in time.
	Failed Phase = "Failed"
	// Unknown: the machine's node does not answer.
	Unknown Phase = "Unknown"
)

// Final says that the phase is the machine's last.
func (p Phase) Final() bool { return p == Succeeded || p == Failed }

// PhaseTransitionTimestamp says when a phase began.
type PhaseTransitionTimestamp struct {
	// +optional
	Phase Phase `json:"phase,omitempty"`
	// +optional
	PhaseTransitionTimestamp metav1.Time `json:"phaseTransitionTimestamp,omitempty"`
}

// ConditionType is the name of a condition.
type ConditionType string

// The conditions.
const (
	// ConditionReady is True while the pod is ready and the guest runs.
	ConditionReady ConditionType = "Ready"
	// ConditionSynchronized is False if the machine cannot be made as its spec
	// says; reason and message say why.
	ConditionSynchronized ConditionType = "Synchronized"
	// ConditionPodScheduled is False while no node fits the machine's pod.
	ConditionPodScheduled ConditionType = "PodScheduled"
	// ConditionSoftwareEmulation is True if the guest runs without hardware
	// virtualization, which is much slower.
	ConditionSoftwareEmulation ConditionType = "SoftwareEmulation"
	// ConditionPaused is True while the guest is paused.
	ConditionPaused ConditionType = "Paused"
)

// Condition is a fact about a machine.
type Condition struct {
	Type   ConditionType          `json:"type"`
	Status corev1.ConditionStatus `json:"status"`
	// +optional
	// +nullable
	LastProbeTime metav1.Time `json:"lastProbeTime,omitempty"`
	// +optional
	// +nullable
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
	// Reason is one word, for programs.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message is a sentence, for people.
	// +optional
	Message string `json:"message,omitempty"`
}

// InterfaceStatus is a network interface as it is.
type InterfaceStatus struct {
	// Name is the name of the interface in the spec.
	// +optional
	Name string `json:"name,omitempty"`
	// IP is the address under which the guest is reached.
	// +optional
	IP string `json:"ipAddress,omitempty"`
	// IPs are all addresses under which the guest is reached.
	// +optional
	// +listType=atomic
	IPs []string `json:"ipAddresses,omitempty"`
	// MAC is the interface's MAC address.
	// +optional
	MAC string `json:"mac,omitempty"`
	// InterfaceName is the interface's name in the guest, if an agent told it.
	// +optional
	InterfaceName string `json:"interfaceName,omitempty"`
	// PodInterfaceName is the pod's interface behind it.
	// +optional
	PodInterfaceName string `json:"podInterfaceName,omitempty"`
	// InfoSource says who told what is here: domain, guest-agent or both.
	// +optional
	InfoSource string `json:"infoSource,omitempty"`
	// QueueCount is the number of queues.
	// +optional
	QueueCount int32 `json:"queueCount,omitempty"`
	// LinkState is up or down.
	// +optional
	LinkState string `json:"linkState,omitempty"`
}

// VolumeStatus is a volume as it is.
type VolumeStatus struct {
	// Name is the volume's name in the spec.
	Name string `json:"name"`
	// Target is the disk's name on its bus, for example vda.
	Target string `json:"target"`
	// Size is the disk's size in bytes.
	// +optional
	Size int64 `json:"size,omitempty"`
}

// MemoryStatus is the memory of a machine.
type MemoryStatus struct {
	// GuestAtBoot is the memory that the guest started with.
	// +optional
	GuestAtBoot *resource.Quantity `json:"guestAtBoot,omitempty"`
	// GuestCurrent is the memory that the guest has now.
	// +optional
	GuestCurrent *resource.Quantity `json:"guestCurrent,omitempty"`
	// GuestRequested is the memory that the spec asks for.
	// +optional
	GuestRequested *resource.Quantity `json:"guestRequested,omitempty"`
	// MemoryOverhead is what the pod is given beside the guest's memory.
	// +optional
	MemoryOverhead *resource.Quantity `json:"memoryOverhead,omitempty"`
}

// Machine is a machine type.
type Machine struct {
	// Type is the machine type, for example q35.
	// +optional
	Type string `json:"type,omitempty"`
}

// CPUTopology is a processor topology.
type CPUTopology struct {
	// +optional
	Cores uint32 `json:"cores,omitempty"`
	// +optional
	Sockets uint32 `json:"sockets,omitempty"`
	// +optional
	Threads uint32 `json:"threads,omitempty"`
}

// Condition returns the condition of type t, or nil if the machine has none.
func (s *VirtualMachineInstanceStatus) Condition(t ConditionType) *Condition {
	for i := range s.Conditions {
		if s.Conditions[i].Type == t {
			return &s.Conditions[i]
		}
	}
	return nil
}

// SetCondition sets the condition of c's type to c. The transition time is
// kept if the status does not change and is now otherwise.
func (s *VirtualMachineInstanceStatus) SetCondition(c Condition, now metav1.Time) {
	old := s.Condition(c.Type)
	if old == nil {
		c.LastTransitionTime = now
		s.Conditions = append(s.Conditions, c)
		return
	}
	c.LastProbeTime, c.LastTransitionTime = old.LastProbeTime, old.LastTransitionTime
	if old.Status != c.Status {
		c.LastTransitionTime = now
	}
	*old = c
}

// RemoveCondition removes the condition of type t, if there is one.
func (s *VirtualMachineInstanceStatus) RemoveCondition(t ConditionType) {
	for i := range s.Conditions {
		if s.Conditions[i].Type == t {
			s.Conditions = append(s.Conditions[:i], s.Conditions[i+1:]...)
			return
		}
	}
}

// SetPhase makes p the phase and notes when it began. It does nothing if p is
// the phase already. Of a phase that begins again only the last time is kept.
func (s *VirtualMachineInstanceStatus) SetPhase(p Phase, now metav1.Time) {
	if s.Phase == p {
		return
	}
	s.Phase = p
	s.PhaseTransitionTimestamps = slices.DeleteFunc(s.PhaseTransitionTimestamps, func(t PhaseTransitionTimestamp) bool { return t.Phase == p })
	s.PhaseTransitionTimestamps = append(s.PhaseTransitionTimestamps, PhaseTransitionTimestamp{Phase: p, PhaseTransitionTimestamp: now})
}
