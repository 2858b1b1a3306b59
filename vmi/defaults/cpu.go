package defaults

import (
	"math"

	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/vmi"
)

// topology makes as many sockets as CPUs are asked for, if the VMI does not
// say what it looks like at all: sockets can be added later.
func topology(d *vmi.DomainSpec) {
	if d.CPU == nil {
		d.CPU = &vmi.CPU{}
	}
	c := d.CPU
	if c.Cores != 0 || c.Sockets != 0 || c.Threads != 0 {
		return
	}
	q, ok := d.Resources.Limits[corev1.ResourceCPU]
	if !ok {
		q = d.Resources.Requests[corev1.ResourceCPU]
	}
	c.Cores, c.Threads = 1, 1
	c.Sockets = uint32(min(max(q.Value(), 1), math.MaxUint32))
}

// model decides what the processor looks like to the guest.
func model(s *vmi.VirtualMachineInstanceSpec, p Profile) {
	c := s.Domain.CPU
	switch {
	case c.Model != "":
	case s.Architecture == ARM64:
		c.Model = vmi.CPUModelPassthrough
	case p.CPUModel != "":
		c.Model = p.CPUModel
	default:
		c.Model = vmi.CPUModelHost
	}
}

// maxVCPUs is the largest number of processors that a default maximum allows.
const maxVCPUs = 512

// hotplug decides how far a VMI may grow while it runs. On arm64 it cannot.
func hotplug(s *vmi.VirtualMachineInstanceSpec, p Profile) {
	if p.NoLiveUpdate || s.Architecture == ARM64 {
		return
	}
	if c := s.Domain.CPU; c.MaxSockets == 0 {
		c.MaxSockets = maxSockets(c, p)
	}
	maxGuest(s, p)
}

func maxSockets(c *vmi.CPU, p Profile) uint32 {
	if p.MaxSockets > 0 {
		return max(p.MaxSockets, c.Sockets)
	}
	each := uint64(max(c.Cores, 1)) * uint64(max(c.Threads, 1))
	n := uint64(c.Sockets) * uint64(p.hotplugRatio())
	return uint32(max(min(n, maxVCPUs/each), uint64(c.Sockets)))
}
