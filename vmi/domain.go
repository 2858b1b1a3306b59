package vmi

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// DomainSpec is the hardware of a guest.
type DomainSpec struct {
	// Devices are the VMI's devices: disks, network interfaces and the rest.
	Devices Devices `json:"devices"`

	// CPU is the VMI's processor. Default: one core of the cluster's default
	// model.
	// +optional
	CPU *CPU `json:"cpu,omitempty"`

	// Memory is the VMI's memory.
	// +optional
	Memory *Memory `json:"memory,omitempty"`

	// Resources are what the VMI's pod asks the node for.
	// +optional
	Resources ResourceRequirements `json:"resources,omitempty"`

	// Machine is the machine type, that is the board which QEMU emulates. Default:
	// the cluster's default for the VMI's architecture.
	// +optional
	Machine *Machine `json:"machine,omitempty"`

	// Firmware is what runs before the guest's operating system, and the identity
	// that it shows the guest.
	// +optional
	Firmware *Firmware `json:"firmware,omitempty"`

	// Clock says what the guest's clock shows at start, and which timers the
	// guest has.
	// +optional
	Clock *Clock `json:"clock,omitempty"`

	// Features switches parts of the machine type and of the hypervisor on and off.
	// +optional
	Features *Features `json:"features,omitempty"`

	// Chassis is what the guest reads about its case in the SMBIOS tables.
	// +optional
	Chassis *Chassis `json:"chassis,omitempty"`

	// IOThreadsPolicy gives the disks on the virtio bus threads of their own, so
	// that they do not wait for the processors: shared, auto or
	// supplementalPool. Default: QEMU's main thread serves all disks, except
	// those that ask for a dedicatedIOThread.
	// +optional
	IOThreadsPolicy IOThreadsPolicy `json:"ioThreadsPolicy,omitempty"`

	// IOThreads sizes the pool of the policy supplementalPool.
	// +optional
	IOThreads *IOThreads `json:"ioThreads,omitempty"`

	// LaunchSecurity keeps the guest's memory and processors from the node that it
	// runs on. Default: the node sees all of the guest.
	// +optional
	LaunchSecurity *LaunchSecurity `json:"launchSecurity,omitempty"`

	// RebootPolicy says what happens when the guest reboots: Reboot restarts it in
	// the same pod, Terminate ends the VMI as if the guest had powered off.
	// Default: Reboot.
	// +optional
	RebootPolicy RebootPolicy `json:"rebootPolicy,omitempty"`
}

// Machine is a machine type.
type Machine struct {
	// Type is the machine type as QEMU names it: q35, or a version of it such as
	// pc-q35-7.2. The alias q35 means the newest version that the launcher's QEMU
	// has; status.machine.type says which. The cluster may allow others, or fewer.
	// QEMU comes with the launcher's image, so every node has the same machine
	// types, needs no label for them, and the pod selects none; a VMI whose
	// machine type is not among them fails with the reason in its status.
	// +optional
	Type string `json:"type,omitempty"`
}

// IOThreadsPolicy says how disks share I/O threads.
//
// +podvisor:enum
type IOThreadsPolicy string

// The policies of I/O threads. The zero value stands for none.
const (
	// IOThreadsShared: one thread for all disks.
	IOThreadsShared IOThreadsPolicy = "shared"
	// IOThreadsAuto: up to twice as many threads as processors, assigned to the
	// disks in turn.
	IOThreadsAuto IOThreadsPolicy = "auto"
	// IOThreadsSupplementalPool: the disks take turns on the threads of one pool. With
	// QEMU 7.2 a disk uses one of them.
	IOThreadsSupplementalPool IOThreadsPolicy = "supplementalPool"
)

// IOThreads is a pool of I/O threads.
type IOThreads struct {
	// SupplementalPoolThreadCount is the number of threads in the pool. It must
	// be set, and more than 0, if ioThreadsPolicy is supplementalPool, and means
	// nothing otherwise.
	// +optional
	// +kubebuilder:validation:Minimum=1
	SupplementalPoolThreadCount *uint32 `json:"supplementalPoolThreadCount,omitempty"`
}

// IOThreadPool is the number of threads in the pool of the policy supplementalPool: 0
// with any other policy.
func (d *DomainSpec) IOThreadPool() uint32 {
	if d.IOThreadsPolicy != IOThreadsSupplementalPool || d.IOThreads == nil || d.IOThreads.SupplementalPoolThreadCount == nil {
		return 0
	}
	return *d.IOThreads.SupplementalPoolThreadCount
}

// RebootPolicy says what happens when the guest reboots.
//
// +podvisor:enum
type RebootPolicy string

// The reboot policies. The zero value stands for Reboot.
const (
	RebootPolicyReboot    RebootPolicy = "Reboot"
	RebootPolicyTerminate RebootPolicy = "Terminate"
)

// Chassis is what the SMBIOS tables say about the guest's case. A field that is
// left out is not in the tables.
type Chassis struct {
	// Manufacturer of the case.
	// +optional
	Manufacturer string `json:"manufacturer,omitempty"`
	// Version of the case.
	// +optional
	Version string `json:"version,omitempty"`
	// Serial number of the case.
	// +optional
	Serial string `json:"serial,omitempty"`
	// Asset tag of the case.
	// +optional
	Asset string `json:"asset,omitempty"`
	// Sku is the stock-keeping unit of the case.
	// +optional
	Sku string `json:"sku,omitempty"`
}

// ResourceRequirements are what the VMI's pod asks the node for.
type ResourceRequirements struct {
	// Requests are the resources that the node must have free: cpu, memory,
	// ephemeral-storage, and what device plugins offer, of which requests and
	// limits must be equal. Memory is the guest's share: the overhead of running a
	// VMI is added to it. Default for memory: its limit, or else the guest's
	// memory, less what the cluster overcommits; for cpu: its limit, or else as
	// the cluster's configuration says, usually a tenth of a CPU per processor;
	// for ephemeral-storage: 50M. Huge pages that are named here are taken from
	// the node beside those that memory.hugepages makes the guest's memory of. A request above its limit is refused.
	// +optional
	Requests corev1.ResourceList `json:"requests,omitempty"`

	// Limits are the resources that the pod may not exceed. The overhead of
	// running a VMI is added to a memory limit. What the guest writes to disks
	// that are lost with it counts as ephemeral-storage; a VMI that exceeds that
	// limit is evicted. Default: no limit.
	// +optional
	Limits corev1.ResourceList `json:"limits,omitempty"`

	// OvercommitGuestOverhead leaves the overhead of running a VMI out of the
	// memory request, so that more VMIs fit on a node; some are killed when all of
	// them use their memory in full. A memory limit still includes it. Default:
	// false.
	// +optional
	OvercommitGuestOverhead bool `json:"overcommitGuestOverhead,omitempty"`
}

// GuestMemory is the amount of memory that the guest sees: memory.guest, or
// the memory request, or the memory limit. It is zero if the spec names none.
func (d *DomainSpec) GuestMemory() resource.Quantity {
	if d.Memory != nil && d.Memory.Guest != nil {
		return *d.Memory.Guest
	}
	if q, ok := d.Resources.Requests[corev1.ResourceMemory]; ok {
		return q
	}
	return d.Resources.Limits[corev1.ResourceMemory]
}
