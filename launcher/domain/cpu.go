package domain

import (
	"fmt"

	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/vmi"
)

// cpu adds the processors that the guest sees: of the closest model to the node's
// that has a name, or of the node's own. Emulation has neither; there it is all
// that QEMU can emulate.
func cpu(b *build) error {
	c := b.spec.CPU
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
	case c.Model != "" && c.Model != vmi.CPUModelHost && c.Model != vmi.CPUModelPassthrough:
		return fmt.Errorf("spec.domain.cpu.model: model %s is not served: set %s or %s: %w",
			c.Model, vmi.CPUModelHost, vmi.CPUModelPassthrough, vmi.ErrInvalid)
	case !b.host.KVM:
		out.Mode = "maximum"
	case c.Model == vmi.CPUModelPassthrough:
		// There is no model to check the processor against. Features that bind the
		// guest to this node, such as an invariant time stamp counter, are left out.
		out.Mode, out.Check, out.Migratable = "host-passthrough", "none", "on"
	}
	b.domain.CPU = out
	b.domain.VCPU = &libvirtxml.DomainVCPU{Placement: "static", Value: uint(c.VCPUs())}
	return nil
}
