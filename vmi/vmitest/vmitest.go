package vmitest

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/vmi"
)

// What objects that are made here have.
const (
	// UID is the UID of every object but the VMIs of VMs.
	UID types.UID = "11111111-1111-4111-8111-111111111111"
	// InstanceUID is that of the VMI of a VM, and PodUID that of a VMI's pod.
	InstanceUID types.UID = "22222222-2222-4222-8222-222222222222"
	PodUID      types.UID = "33333333-3333-4333-8333-333333333333"
	// Node is the name of the node that a VMI is on.
	Node = "node1"
)

// Option changes a VMI that is being built.
type Option func(*vmi.VirtualMachineInstance)

// New makes the VMI default/testvmi with 128 MiB of memory, no disk and no
// network, changed by the options in order.
func New(options ...Option) *vmi.VirtualMachineInstance {
	off := false
	v := &vmi.VirtualMachineInstance{
		TypeMeta:   metav1.TypeMeta{APIVersion: vmi.GroupVersion.String(), Kind: vmi.VirtualMachineInstances.Kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "testvmi", UID: UID},
	}
	v.Spec.Domain.Devices.AutoattachPodInterface = &off
	WithMemory("128Mi")(v)
	for _, o := range options {
		o(v)
	}
	return v
}

// WithName sets the VMI's name.
func WithName(name string) Option { return func(v *vmi.VirtualMachineInstance) { v.Name = name } }

// WithMemory sets the guest's memory, as in "1Gi".
func WithMemory(size string) Option {
	q := resource.MustParse(size)
	return func(v *vmi.VirtualMachineInstance) { v.Spec.Domain.Memory = &vmi.Memory{Guest: &q} }
}

// WithCores sets the number of cores.
func WithCores(n uint32) Option {
	return func(v *vmi.VirtualMachineInstance) { v.Spec.Domain.CPU = &vmi.CPU{Cores: n} }
}

// WithGracePeriod sets the time that the guest has to power off, in seconds.
func WithGracePeriod(seconds int64) Option {
	return func(v *vmi.VirtualMachineInstance) { v.Spec.TerminationGracePeriodSeconds = &seconds }
}

// WithLabel adds a label to the VMI.
func WithLabel(key, value string) Option {
	return func(v *vmi.VirtualMachineInstance) {
		if v.Labels == nil {
			v.Labels = map[string]string{}
		}
		v.Labels[key] = value
	}
}

// WithPhase sets the phase of the VMI's status.
func WithPhase(p vmi.Phase) Option {
	return func(v *vmi.VirtualMachineInstance) { v.Status.Phase = p }
}

// WithDisk adds a disk on the virtio bus and the volume behind it.
func WithDisk(name string, source vmi.VolumeSource) Option {
	return func(v *vmi.VirtualMachineInstance) {
		d := &v.Spec.Domain.Devices
		d.Disks = append(d.Disks, vmi.Disk{Name: name, Disk: &vmi.DiskTarget{Bus: vmi.DiskBusVirtio}})
		v.Spec.Volumes = append(v.Spec.Volumes, vmi.Volume{Name: name, VolumeSource: source})
	}
}

// WithContainerDisk adds a disk from a container image.
func WithContainerDisk(name, image string) Option {
	return WithDisk(name, vmi.VolumeSource{ContainerDisk: &vmi.ContainerDisk{Image: image}})
}

// WithCloudInit adds a NoCloud disk with this user data.
func WithCloudInit(name, userData string) Option {
	return WithDisk(name, vmi.VolumeSource{CloudInitNoCloud: &vmi.CloudInitNoCloud{UserData: userData}})
}

// WithEmptyDisk adds an empty disk of this size, as in "1Gi".
func WithEmptyDisk(name, size string) Option {
	return WithDisk(name, vmi.VolumeSource{EmptyDisk: &vmi.EmptyDisk{Capacity: resource.MustParse(size)}})
}

// WithClaim adds a disk from a claim.
func WithClaim(name, claim string) Option {
	return WithDisk(name, vmi.VolumeSource{PersistentVolumeClaim: &vmi.PersistentVolumeClaimVolume{
		PersistentVolumeClaimVolumeSource: corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
	}})
}

// WithMasquerade adds an interface to the pod network, bound by masquerade,
// that forwards the ports, or all if there is none.
func WithMasquerade(name string, ports ...vmi.Port) Option {
	return withInterface(vmi.Interface{Name: name, Ports: ports, InterfaceBinding: vmi.InterfaceBinding{Masquerade: &vmi.InterfaceMasquerade{}}})
}

// WithBridge adds an interface to the pod network, bound by a bridge.
func WithBridge(name string) Option {
	return withInterface(vmi.Interface{Name: name, InterfaceBinding: vmi.InterfaceBinding{Bridge: &vmi.InterfaceBridge{}}})
}

// WithMultus adds an interface to a network of Multus, bound by a bridge.
func WithMultus(name, network string) Option {
	i := vmi.Interface{Name: name, InterfaceBinding: vmi.InterfaceBinding{Bridge: &vmi.InterfaceBridge{}}}
	return WithInterface(i, vmi.NetworkSource{Multus: &vmi.MultusNetwork{NetworkName: network}})
}

// WithInterface adds an interface and the network of its name.
func WithInterface(i vmi.Interface, source vmi.NetworkSource) Option {
	return func(v *vmi.VirtualMachineInstance) {
		d := &v.Spec.Domain.Devices
		d.Interfaces = append(d.Interfaces, i)
		v.Spec.Networks = append(v.Spec.Networks, vmi.Network{Name: i.Name, NetworkSource: source})
	}
}

func withInterface(i vmi.Interface) Option {
	return WithInterface(i, vmi.NetworkSource{Pod: &vmi.PodNetwork{}})
}
