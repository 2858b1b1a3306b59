package domain

import (
	"fmt"

	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/vmi"
)

func vcpu(c *vmi.CPU) *libvirtxml.DomainVCPU {
	return &libvirtxml.DomainVCPU{Placement: "static", Value: uint(c.VCPUs())}
}

// modelled says why the guest cannot see the processor that the spec names.
func modelled(c *vmi.CPU) error {
	if c == nil || c.Model == "" || c.Model == vmi.CPUModelHost || c.Model == vmi.CPUModelPassthrough {
		return nil
	}
	return fmt.Errorf("the processor model %s cannot be asked for by its name yet: set cpu.model to %s or %s: %w",
		c.Model, vmi.CPUModelHost, vmi.CPUModelPassthrough, vmi.ErrInvalid)
}

// cpu is the processor that the guest sees: the closest to the node's that has a
// name, or the node's own. Emulation knows neither; there it is all that QEMU can
// emulate.
func cpu(c *vmi.CPU, h Host) *libvirtxml.DomainCPU {
	if c == nil {
		c = &vmi.CPU{}
	}
	out := &libvirtxml.DomainCPU{
		Mode: "host-model",
		Topology: &libvirtxml.DomainCPUTopology{
			Sockets: int(max(c.Sockets, 1)),
			Cores:   int(max(c.Cores, 1)),
			Threads: int(max(c.Threads, 1)),
		},
	}
	switch {
	case !h.KVM:
		out.Mode = "maximum"
	case c.Model == vmi.CPUModelPassthrough:
		// There is no model to check the processor against. What would tie the
		// guest to this node for good, such as a time stamp counter that never
		// stops, is left out.
		out.Mode, out.Check, out.Migratable = "host-passthrough", "none", "on"
	}
	return out
}
