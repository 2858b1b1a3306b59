// Package defaults completes what a user left out of a machine's spec.
//
// [Apply] is the only place where a default is decided. It computes; it touches
// nothing, and it never changes its input. Every component applies it to what it
// reads, so a machine that was stored without defaults is treated in the same
// way everywhere.
package defaults

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/vmi"
)

// Apply returns a copy of v in which everything that the spec leaves open is
// decided as the profile says. Applying it twice changes nothing more.
func Apply(v *vmi.VirtualMachineInstance, p Profile) *vmi.VirtualMachineInstance {
	v = v.DeepCopy()
	resources(&v.Spec.Domain, p)
	networks(&v.Spec, p)
	disks(&v.Spec)
	images(&v.Spec)
	if v.Spec.TerminationGracePeriodSeconds == nil {
		v.Spec.TerminationGracePeriodSeconds = new(int64(vmi.DefaultGracePeriod.Seconds()))
	}
	return v
}

// defaultName is the name of the interface and the network that a machine gets
// when it lists none.
const defaultName = "default"

func networks(s *vmi.VirtualMachineInstanceSpec, p Profile) {
	d := &s.Domain.Devices
	auto := d.AutoattachPodInterface == nil || *d.AutoattachPodInterface
	if auto && len(d.Interfaces) == 0 && len(s.Networks) == 0 {
		d.Interfaces = []vmi.Interface{{Name: defaultName}}
		s.Networks = []vmi.Network{{Name: defaultName, NetworkSource: vmi.NetworkSource{Pod: &vmi.PodNetwork{}}}}
	}
	for i := range d.Interfaces {
		n := &d.Interfaces[i]
		if n.Bridge == nil && n.Masquerade == nil {
			n.InterfaceBinding = p.binding()
		}
		if n.Model == "" {
			n.Model = "virtio"
		}
		for p := range n.Ports {
			if n.Ports[p].Protocol == "" {
				n.Ports[p].Protocol = "TCP"
			}
		}
	}
}

// disks gives every volume a disk and every disk a bus.
func disks(s *vmi.VirtualMachineInstanceSpec) {
	have := map[string]bool{}
	for _, d := range s.Domain.Devices.Disks {
		have[d.Name] = true
	}
	for _, v := range s.Volumes {
		if !have[v.Name] {
			s.Domain.Devices.Disks = append(s.Domain.Devices.Disks, vmi.Disk{Name: v.Name})
		}
	}
	for i := range s.Domain.Devices.Disks {
		d := &s.Domain.Devices.Disks[i]
		if d.Disk == nil {
			d.Disk = &vmi.DiskTarget{}
		}
		if d.Disk.Bus == "" {
			d.Disk.Bus = vmi.DiskBusSATA
		}
	}
}

func images(s *vmi.VirtualMachineInstanceSpec) {
	for i := range s.Volumes {
		if c := s.Volumes[i].ContainerDisk; c != nil && c.ImagePullPolicy == "" {
			c.ImagePullPolicy = pullPolicy(c.Image)
		}
	}
}

// pullPolicy is Always for an image whose reference may mean another image
// tomorrow: one with the tag latest or none.
func pullPolicy(image string) corev1.PullPolicy {
	name := image[strings.LastIndex(image, "/")+1:]
	if strings.Contains(name, "@") {
		return corev1.PullIfNotPresent
	}
	if _, tag, ok := strings.Cut(name, ":"); !ok || tag == "latest" {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}
