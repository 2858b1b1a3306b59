package domain

import (
	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/vmi"
)

// translationCacheBytes is the memory that QEMU keeps translated code in when it
// emulates. QEMU's own default is 1 GiB, which no pod's overhead allows for.
const translationCacheBytes = 32 << 20

// features adds what the machine type and the hypervisor offer. Emulation has none of
// KVM's interfaces: there, they are left out, so that a manifest for KVM starts.
func features(b *Draft) error {
	spec := b.Spec.Features
	if spec == nil {
		spec = &vmi.Features{}
	}
	f := &libvirtxml.DomainFeatureList{}
	if isOn(spec.ACPI.Enabled, b.Host.Arch != archS390X) {
		f.ACPI = &libvirtxml.DomainFeature{}
	}
	if spec.SMM != nil {
		f.SMM = &libvirtxml.DomainFeatureSMM{State: onOff(spec.SMM.On())}
	}
	switch b.Host.Arch {
	case archX86:
		f.VMPort = &libvirtxml.DomainFeatureState{State: "off"}
		apic(f, spec.APIC, b.Host.KVM)
	case archARM:
		f.GIC = &libvirtxml.DomainFeatureGIC{}
	}
	if b.Host.KVM {
		kvmFeatures(f, spec)
		if b.dedicated() && b.Host.Arch == archX86 {
			if f.KVM == nil {
				f.KVM = &libvirtxml.DomainFeatureKVM{}
			}
			f.KVM.HintDedicated = &libvirtxml.DomainFeatureState{State: "on"} // a processor that waits need not give way
		}
	} else {
		f.TCG = &libvirtxml.DomainFeatureTCG{TBCache: &libvirtxml.DomainFeatureTCGTBCache{Unit: "MiB", Size: translationCacheBytes >> 20}}
	}
	b.Domain.Features = f
	return nil
}

// apic adds the interrupt controller. How an interrupt ends is of KVM.
func apic(f *libvirtxml.DomainFeatureList, a *vmi.FeatureAPIC, kvm bool) {
	if a == nil || !isOn(a.Enabled, true) {
		return
	}
	f.APIC = &libvirtxml.DomainFeatureAPIC{}
	if a.EndOfInterrupt && kvm {
		f.APIC.EOI = "on"
	}
}

// kvmFeatures adds the interfaces of KVM, and those of Hyper-V that it has.
func kvmFeatures(f *libvirtxml.DomainFeatureList, spec *vmi.Features) {
	if k := spec.KVM; k != nil {
		f.KVM = &libvirtxml.DomainFeatureKVM{Hidden: &libvirtxml.DomainFeatureState{State: onOff(k.Hidden)}}
	}
	if p := spec.PVSpinlock; p != nil {
		f.PVSpinlock = &libvirtxml.DomainFeatureState{State: onOff(p.On())}
	}
	switch h := spec.HypervPassthrough; {
	case h != nil && isOn(h.Enabled, true):
		f.HyperV = &libvirtxml.DomainFeatureHyperV{Mode: "passthrough"}
	case spec.Hyperv != nil:
		f.HyperV = hyperv(spec.Hyperv)
	}
}

// dedicated says that the guest has CPUs of the node for itself.
func (b *Draft) dedicated() bool { return b.Spec.CPU != nil && b.Spec.CPU.DedicatedCPUPlacement }

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
