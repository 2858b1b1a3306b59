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
		// What the spec says of a feature takes the place of what the model says: libvirt
		// refuses a feature that is named twice.
		out.Features = slices.DeleteFunc(out.Features, func(of libvirtxml.DomainCPUFeature) bool { return of.Name == f.Name })
		out.Features = append(out.Features, libvirtxml.DomainCPUFeature{Name: f.Name, Policy: string(cmp.Or(f.Policy, vmi.CPUFeatureRequire))})
	}
	b.Domain.CPU = out
	topology(b, c)
	return dedicated(b)
}

// cpuModel is a model by its name, the closest to the node's that has a name, or the
// node's own processor. Emulation has neither of the last two; there it is the same
// model on every node and with every QEMU.
func cpuModel(c *vmi.CPU, h Host) *libvirtxml.DomainCPU {
	switch {
	case c.Named():
		return named(c.Model, h)
	case !h.KVM:
		return emulatedModel(h)
	case h.Arch == archARM:
		// KVM has no other processor, and QEMU leaves no feature of it out.
		return &libvirtxml.DomainCPU{Mode: "host-passthrough", Check: "none"}
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
func named(model string, h Host) *libvirtxml.DomainCPU {
	out := &libvirtxml.DomainCPU{
		Mode: "custom", Match: "exact", Check: "partial",
		Model: &libvirtxml.DomainCPUModel{Fallback: "forbid", Value: model},
	}
	if h.Arch == archX86 {
		out.Features = without(mpx)
	}
	return out
}

// emulatedCPU is the model of a guest on x86_64 that is emulated and whose spec names
// none. It has all of x86-64-v3. Models of Intel have the fault Meltdown, so guests
// flush their translations at each system call, which emulation does slowly.
const emulatedCPU = "EPYC"

// notEmulated are the features of [emulatedCPU], as libvirt knows it, that QEMU 7.2 does
// not emulate. Later versions emulate some of them; the guest has them only where its
// spec asks for them, so that its processor is the same with every QEMU.
var notEmulated = []string{"3dnowprefetch", "fxsr_opt", "misalignsse", "monitor", "nrip-save", "osvw", "rdseed", "sha-ni", "topoext", "vme", "xsavec"}

// emulatedModel is the processor of a guest that is emulated and whose spec names none.
func emulatedModel(h Host) *libvirtxml.DomainCPU {
	if h.Arch != archX86 {
		return &libvirtxml.DomainCPU{Mode: "maximum"}
	}
	out := named(emulatedCPU, h)
	out.Features = without(notEmulated...)
	return out
}

// without are features that a model has and the guest has not.
func without(features ...string) []libvirtxml.DomainCPUFeature {
	var out []libvirtxml.DomainCPUFeature
	for _, f := range features {
		out = append(out, libvirtxml.DomainCPUFeature{Name: f, Policy: string(vmi.CPUFeatureDisable)})
	}
	return out
}
