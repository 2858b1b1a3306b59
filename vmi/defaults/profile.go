package defaults

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/vmi"
)

// The architectures of guests, as in GOARCH.
const (
	AMD64 = "amd64"
	ARM64 = "arm64"
	S390X = "s390x"
)

// Binding is the way in which the interface of a VMI that lists none is bound
// to the pod network.
type Binding string

// The default bindings. The zero value stands for Bridge.
const (
	Bridge     Binding = "bridge"
	Masquerade Binding = "masquerade"
)

// Profile is what a cluster decides for VMIs that leave it open. The zero
// value is KubeVirt's default configuration.
type Profile struct {
	// Architecture of VMIs that name none. Empty: amd64.
	Architecture string
	// MachineTypes are the machine types by architecture. One that is missing: q35, virt
	// or s390-ccw-virtio.
	MachineTypes map[string]string
	// CPUModel of VMIs that name none. Empty: host-model, and on arm64
	// host-passthrough whatever is written here, since it knows no other.
	CPUModel string
	// CPURequest is asked of the node for VMIs that say nothing about it.
	// Nil: the spec stays as it is, and the pod asks for a share of each CPU.
	CPURequest *resource.Quantity
	// EvictionStrategy of VMIs that name none. Empty: None.
	EvictionStrategy vmi.EvictionStrategy
	// ImagePullPolicy of container disks that name none. Empty: Always if the image
	// has the tag latest or none, otherwise IfNotPresent.
	ImagePullPolicy corev1.PullPolicy
	// Binding of the interface of VMIs that list none. Empty: bridge. A
	// cluster that forbids the bridge on the pod network wants masquerade here.
	Binding Binding

	// NoLiveUpdate says that processors and memory are not added to running
	// VMIs, so that no maximum is decided. Default: false.
	NoLiveUpdate bool
	// HotplugRatio is how many times the processors and the memory at the start a
	// VMI may grow to. 0: 4.
	HotplugRatio uint32
	// MaxSockets is what a VMI may grow to. 0: by HotplugRatio.
	MaxSockets uint32
	// MaxGuest is what a VMI's memory may grow to. Nil: by HotplugRatio.
	MaxGuest *resource.Quantity

	// UUID is the one that the firmware of a VMI or VirtualMachine without one gets.
	// Empty: that of a VMI follows from its UID, see the function [UUID], and a VMI
	// without UID and a VirtualMachine get none.
	UUID types.UID
	// Serial is the serial number that the firmware of a VirtualMachine without
	// one gets. Empty: none.
	Serial string
	// Now is when a VMI without a phase becomes Pending. Zero: the time is not
	// recorded.
	Now metav1.Time
}

func (p Profile) architecture() string {
	if p.Architecture == "" {
		return AMD64
	}
	return p.Architecture
}

// machineType is empty for an unknown architecture.
func (p Profile) machineType(arch string) string {
	if t := p.MachineTypes[arch]; t != "" {
		return t
	}
	return map[string]string{AMD64: "q35", ARM64: "virt", S390X: "s390-ccw-virtio"}[arch]
}

func (p Profile) evictionStrategy() vmi.EvictionStrategy {
	if p.EvictionStrategy == "" {
		return vmi.EvictionNone
	}
	return p.EvictionStrategy
}

func (p Profile) hotplugRatio() uint32 {
	if p.HotplugRatio == 0 {
		return 4
	}
	return p.HotplugRatio
}

func (p Profile) binding() vmi.InterfaceBinding {
	if p.Binding == Masquerade {
		return vmi.InterfaceBinding{Masquerade: &vmi.InterfaceMasquerade{}}
	}
	return vmi.InterfaceBinding{Bridge: &vmi.InterfaceBridge{}}
}
