package domain

import (
	"cmp"
	"slices"

	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/vmi"
)

// cpu adds the processors that the guest sees.
func cpu(b *Draft) error {
	c := b.Spec.CPU
	if c == nil {
		c = &vmi.CPU{}
	}
	out := cpuModel(c, b.Host)
	for _, f := range c.Features {
		out.Features = append(out.Features, libvirtxml.DomainCPUFeature{Name: f.Name, Policy: string(cmp.Or(f.Policy, vmi.CPUFeatureRequire))})
	}
	b.Domain.CPU = out
	topology(b, c)
	return dedicated(b)
}

// cpuModel is a model by its name, the closest to the node's that has a name, or the
// node's own processor. Emulation has neither of the last two; there it is all that
// QEMU can emulate.
func cpuModel(c *vmi.CPU, h Host) *libvirtxml.DomainCPU {
	switch {
	case c.Named():
		return named(c, h)
	case !h.KVM:
		return &libvirtxml.DomainCPU{Mode: "maximum"}
	case c.Model == vmi.CPUModelPassthrough:
		// There is no model to check the processor against. Features that bind the
		// guest to this node, such as an invariant time stamp counter, are left out.
		return &libvirtxml.DomainCPU{Mode: "host-passthrough", Check: "none", Migratable: "on"}
	default:
		return &libvirtxml.DomainCPU{Mode: "host-model"}
	}
}

// mpx is the feature that models of Intel have by their definition, and that kernels
// and QEMU no longer have.
const mpx = "mpx"

// named is a model by its name. libvirt checks before the start that all of it can be
// had; without the check, emulation leaves out what it lacks and says nothing.
func named(c *vmi.CPU, h Host) *libvirtxml.DomainCPU {
	out := &libvirtxml.DomainCPU{
		Mode: "custom", Match: "exact", Check: "partial",
		Model: &libvirtxml.DomainCPUModel{Fallback: "forbid", Value: c.Model},
	}
	if h.Arch == "x86_64" && !slices.ContainsFunc(c.Features, func(f vmi.CPUFeature) bool { return f.Name == mpx }) {
		out.Features = []libvirtxml.DomainCPUFeature{{Name: mpx, Policy: "disable"}}
	}
	return out
}
