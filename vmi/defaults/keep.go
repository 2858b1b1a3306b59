package defaults

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/podvisor/podvisor/vmi"
)

// Keep returns a copy of v, an update of stored, that has stored's identity and
// status, and everything that v leaves open and that a [Profile] or the UID decided
// when stored was created. A manifest that is written again gets the same defaults
// in this way, also if those of the cluster have changed. Everything else that v
// leaves open follows from the rest of its spec.
func Keep(stored, v *vmi.VirtualMachineInstance) *vmi.VirtualMachineInstance {
	v, stored = v.DeepCopy(), stored.DeepCopy() // the copy may hold parts of stored
	v.UID, v.CreationTimestamp, v.DeletionTimestamp, v.Status = stored.UID, stored.CreationTimestamp, stored.DeletionTimestamp, stored.Status
	was, is := &stored.Spec, &v.Spec
	keep(&is.Architecture, was.Architecture)
	if is.EvictionStrategy == nil {
		is.EvictionStrategy = was.EvictionStrategy
	}
	keepDomain(&is.Domain, &was.Domain)
	keepImages(is.Volumes, was.Volumes)
	keepNetworks(is, was)
	return v
}

func keep[T ~string](field *T, stored T) {
	if *field == "" {
		*field = stored
	}
}

func keepDomain(is, was *vmi.DomainSpec) {
	if m := was.Machine; m != nil {
		part(&is.Machine)
		keep(&is.Machine.Type, m.Type)
	}
	if c := was.CPU; c != nil {
		part(&is.CPU)
		if i := is.CPU; i.Cores == 0 && i.Sockets == 0 && i.Threads == 0 && c.Cores == 1 && c.Threads == 1 {
			i.Cores, i.Sockets, i.Threads = c.Cores, c.Sockets, c.Threads // as many sockets as the cluster requests CPUs
		}
		keep(&is.CPU.Model, c.Model)
		if is.CPU.MaxSockets == 0 {
			is.CPU.MaxSockets = c.MaxSockets
		}
	}
	if m := was.Memory; m != nil && m.MaxGuest != nil {
		part(&is.Memory)
		if is.Memory.MaxGuest == nil {
			is.Memory.MaxGuest = m.MaxGuest
		}
	}
	if f := was.Firmware; f != nil && (f.UUID != "" || f.Serial != "") {
		part(&is.Firmware)
		keep(&is.Firmware.UUID, f.UUID)
		keep(&is.Firmware.Serial, f.Serial)
	}
	if q, ok := was.Resources.Requests[corev1.ResourceCPU]; ok {
		if now := is.Resources.Requests[corev1.ResourceCPU]; now.IsZero() {
			if is.Resources.Requests == nil {
				is.Resources.Requests = corev1.ResourceList{}
			}
			is.Resources.Requests[corev1.ResourceCPU] = q
		}
	}
}

// part makes a part of a spec that is missing.
func part[T any](p **T) {
	if *p == nil {
		*p = new(T)
	}
}

func keepImages(is, was []vmi.Volume) {
	policies := map[string]corev1.PullPolicy{}
	for _, v := range was {
		if v.ContainerDisk != nil {
			policies[v.Name] = v.ContainerDisk.ImagePullPolicy
		}
	}
	for _, v := range is {
		if c := v.ContainerDisk; c != nil {
			keep(&c.ImagePullPolicy, policies[v.Name])
		}
	}
}

// keepNetworks keeps the connection to the pod network of a VMI that lists none.
func keepNetworks(is, was *vmi.VirtualMachineInstanceSpec) {
	if len(is.Networks) > 0 || len(is.Domain.Devices.Interfaces) > 0 {
		return
	}
	for _, b := range []Binding{Bridge, Masquerade} {
		made := &vmi.VirtualMachineInstanceSpec{}
		networks(made, Profile{Binding: b})
		if equality.Semantic.DeepEqual(made.Networks, was.Networks) && equality.Semantic.DeepEqual(made.Domain.Devices.Interfaces, was.Domain.Devices.Interfaces) &&
			(is.Domain.Devices.AutoattachPodInterface == nil || *is.Domain.Devices.AutoattachPodInterface) {
			is.Networks, is.Domain.Devices.Interfaces = was.Networks, was.Domain.Devices.Interfaces
		}
	}
}
