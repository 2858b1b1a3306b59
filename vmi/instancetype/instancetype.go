package instancetype

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
)

// VirtualMachineInstancetype is how large the VMs of its namespace are that name it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=vminstancetype;vminstancetypes;vmf;vmfs,categories=all
// +kubebuilder:printcolumn:name="CPU",type=integer,JSONPath=`.spec.cpu.guest`
// +kubebuilder:printcolumn:name="Memory",type=string,JSONPath=`.spec.memory.guest`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type VirtualMachineInstancetype struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the size. A change reaches only VMs that use it for the first time later.
	Spec VirtualMachineInstancetypeSpec `json:"spec"`
}

// VirtualMachineInstancetypeList is a list of VirtualMachineInstancetypes.
//
// +kubebuilder:object:root=true
type VirtualMachineInstancetypeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []VirtualMachineInstancetype `json:"items"`
}

// VirtualMachineClusterInstancetype is how large the VMs of any namespace are that name it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=vmclusterinstancetype;vmclusterinstancetypes;vmcf;vmcfs
// +kubebuilder:printcolumn:name="CPU",type=integer,JSONPath=`.spec.cpu.guest`
// +kubebuilder:printcolumn:name="Memory",type=string,JSONPath=`.spec.memory.guest`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type VirtualMachineClusterInstancetype struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the size. A change reaches only VMs that use it for the first time later.
	Spec VirtualMachineInstancetypeSpec `json:"spec"`
}

// VirtualMachineClusterInstancetypeList is a list of VirtualMachineClusterInstancetypes.
//
// +kubebuilder:object:root=true
type VirtualMachineClusterInstancetypeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []VirtualMachineClusterInstancetype `json:"items"`
}

// VirtualMachineInstancetypeSpec is a size. What it sets, the template of a VM cannot set.
type VirtualMachineInstancetypeSpec struct {
	// CPU is the processor of the guest.
	CPU CPUInstancetype `json:"cpu"`

	// Memory is the memory of the guest.
	Memory MemoryInstancetype `json:"memory"`

	// NodeSelector selects the nodes by their labels.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// SchedulerName is the scheduler that places the pod.
	// +optional
	SchedulerName string `json:"schedulerName,omitempty"`

	// GPUs are graphics processors of the node.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	GPUs []vmi.GPU `json:"gpus,omitempty"`

	// HostDevices are other devices of the node.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	HostDevices []vmi.HostDevice `json:"hostDevices,omitempty"`

	// IOThreadsPolicy gives the disks on the virtio bus threads of their own: shared,
	// auto or supplementalPool.
	// +optional
	IOThreadsPolicy *vmi.IOThreadsPolicy `json:"ioThreadsPolicy,omitempty"`

	// IOThreads sizes the pool of the policy supplementalPool.
	// +optional
	IOThreads *vmi.IOThreads `json:"ioThreads,omitempty"`

	// LaunchSecurity keeps the guest's memory from the node. A preference says it in
	// preferredLaunchSecurity, so that it fits the guest.
	// +optional
	LaunchSecurity *vmi.LaunchSecurity `json:"launchSecurity,omitempty"`

	// Annotations are put on the VMI. One with another value in the template is a fault.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// CPUInstancetype is the processor of an instance type.
type CPUInstancetype struct {
	// Guest is the number of processors that the guest sees. The preference says how
	// they are divided into sockets, cores and threads; without one they are sockets.
	Guest uint32 `json:"guest"`

	// Model is the processor that the guest sees, as in cpu.model of a VMI.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$`
	Model *string `json:"model,omitempty"`

	// DedicatedCPUPlacement gives every processor of the guest a CPU of the node for
	// itself.
	// +optional
	DedicatedCPUPlacement *bool `json:"dedicatedCPUPlacement,omitempty"`

	// IsolateEmulatorThread gives QEMU's own work one more CPU. It needs
	// dedicatedCPUPlacement.
	// +optional
	IsolateEmulatorThread *bool `json:"isolateEmulatorThread,omitempty"`

	// NUMA shows the guest the node's memory topology. It needs dedicatedCPUPlacement
	// and hugepages.
	// +optional
	NUMA *vmi.NUMA `json:"numa,omitempty"`

	// MaxSockets is the number of sockets that can be had without a restart. It
	// replaces that of the template.
	// +optional
	MaxSockets *uint32 `json:"maxSockets,omitempty"`
}

// MemoryInstancetype is the memory of an instance type.
type MemoryInstancetype struct {
	// Guest is the amount of memory that the guest sees.
	Guest resource.Quantity `json:"guest"`

	// Hugepages backs the guest's memory with huge pages of the node.
	// +optional
	Hugepages *vmi.Hugepages `json:"hugepages,omitempty"`

	// OvercommitPercent is how much less memory the pod asks for than the guest sees.
	// It excludes hugepages.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	OvercommitPercent int `json:"overcommitPercent,omitempty"`

	// MaxGuest is the amount of memory that can be had without a restart.
	// +optional
	MaxGuest *resource.Quantity `json:"maxGuest,omitempty"`
}
