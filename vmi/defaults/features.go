package defaults

import (
	"slices"

	"github.com/podvisor/podvisor/vmi"
)

// spinlockRetries is how often a guest of Windows tries before it yields.
const spinlockRetries = 4096

// vmx is the processor feature with which a guest runs guests.
const vmx = "vmx"

// enable switches a feature on that is named without saying whether.
func enable(f *vmi.FeatureState) {
	if f != nil {
		on(&f.Enabled)
	}
}

func on(enabled **bool) {
	if *enabled == nil {
		*enabled = new(true)
	}
}

func features(d *vmi.DomainSpec, arch string) {
	if d.Features == nil {
		d.Features = &vmi.Features{}
	}
	f := d.Features
	// There is no ACPI on s390x.
	if f.ACPI.Enabled == nil {
		f.ACPI.Enabled = new(arch != S390X)
	}
	enable(f.SMM)
	enable(f.PVSpinlock)
	if f.HypervPassthrough != nil {
		on(&f.HypervPassthrough.Enabled)
	}
	if f.APIC != nil {
		on(&f.APIC.Enabled)
	}
	if f.Hyperv != nil {
		hyperv(f.Hyperv)
		hypervNeeds(d, f.Hyperv)
	}
}

func hyperv(h *vmi.FeatureHyperv) {
	for _, f := range []*vmi.FeatureState{h.Relaxed, h.VAPIC, h.VPIndex, h.Runtime, h.SyNIC, h.Reset, h.Frequencies, h.Reenlightenment, h.IPI, h.EVMCS} {
		enable(f)
	}
	if s := h.Spinlocks; s != nil {
		on(&s.Enabled)
		if s.Retries == nil {
			s.Retries = new(uint32(spinlockRetries))
		}
	}
	if t := h.SyNICTimer; t != nil {
		on(&t.Enabled)
		enable(t.Direct)
	}
	if t := h.TLBFlush; t != nil {
		on(&t.Enabled)
		enable(t.Direct)
		enable(t.Extended)
	}
	if i := h.VendorID; i != nil {
		on(&i.Enabled)
	}
}

// hypervNeeds switches on what the wanted features build on, unless the user
// has switched it off: then validation refuses the VMI.
func hypervNeeds(d *vmi.DomainSpec, h *vmi.FeatureHyperv) {
	if wanted(h.EVMCS) {
		need(&h.VAPIC)
		needVMX(d.CPU)
	}
	if h.SyNICTimer != nil && *h.SyNICTimer.Enabled && (h.VPIndex == nil || *h.VPIndex.Enabled) {
		need(&h.SyNIC)
	}
	if wanted(h.IPI) || wanted(h.SyNIC) || h.TLBFlush != nil && *h.TLBFlush.Enabled {
		need(&h.VPIndex)
	}
}

func wanted(f *vmi.FeatureState) bool { return f != nil && *f.Enabled }

func need(f **vmi.FeatureState) {
	if *f == nil {
		*f = &vmi.FeatureState{Enabled: new(true)}
	}
}

func needVMX(c *vmi.CPU) {
	i := slices.IndexFunc(c.Features, func(f vmi.CPUFeature) bool { return f.Name == vmx })
	if i < 0 {
		c.Features = append(c.Features, vmi.CPUFeature{Name: vmx, Policy: vmi.CPUFeatureRequire})
	} else if c.Features[i].Policy == vmi.CPUFeatureUnset {
		c.Features[i].Policy = vmi.CPUFeatureRequire
	}
}

func timers(c *vmi.Clock) {
	if c == nil || c.Timer == nil {
		return
	}
	t := c.Timer
	if t.HPET != nil {
		on(&t.HPET.Enabled)
	}
	if t.KVM != nil {
		on(&t.KVM.Enabled)
	}
	if t.PIT != nil {
		on(&t.PIT.Enabled)
	}
	if t.RTC != nil {
		on(&t.RTC.Enabled)
	}
	if t.Hyperv != nil {
		on(&t.Hyperv.Enabled)
	}
}
