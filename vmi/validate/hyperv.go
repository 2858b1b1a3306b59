package validate

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
)

// hyperv checks that what a paravirtual feature of Windows builds on is on too.
func hyperv(at *field.Path, d *vmi.DomainSpec) field.ErrorList {
	if d.Features == nil || d.Features.Hyperv == nil {
		return nil
	}
	if p := d.Features.HypervPassthrough; p != nil && enabled(p.Enabled) {
		return field.ErrorList{field.Invalid(at.Child("domain", "features", "hyperv"), "set", "excludes hypervPassthrough, which has all of it: leave one of the two out")}
	}
	h, here := d.Features.Hyperv, at.Child("domain", "features", "hyperv")
	var l field.ErrorList
	for _, n := range []struct {
		name  string
		on    bool
		needs string
		has   *vmi.FeatureState
	}{
		{"evmcs", on(h.EVMCS), "vapic", h.VAPIC},
		{"ipi", on(h.IPI), "vpindex", h.VPIndex},
		{"tlbflush", h.TLBFlush != nil && enabled(h.TLBFlush.Enabled), "vpindex", h.VPIndex},
		{"synictimer", h.SyNICTimer != nil && enabled(h.SyNICTimer.Enabled), "synic", h.SyNIC},
		{"synic", on(h.SyNIC), "vpindex", h.VPIndex},
	} {
		if n.on && !on(n.has) {
			l = append(l, field.Invalid(here.Child(n.name), "on", "needs "+n.needs+", which is off: switch it on or "+n.name+" off"))
		}
	}
	if s := h.Spinlocks; s != nil && s.Retries != nil && *s.Retries < 4096 && enabled(s.Enabled) {
		l = append(l, field.Invalid(here.Child("spinlocks", "spinlocks"), *s.Retries, "must be at least 4096"))
	}
	if id := h.VendorID; id != nil && id.VendorID == "" && enabled(id.Enabled) {
		l = append(l, field.Required(here.Child("vendorid", "vendorid"), "name what the guest sees, in at most 12 characters, or leave vendorid out"))
	}
	if id := h.VendorID; id != nil && len(id.VendorID) > 12 {
		l = append(l, field.Invalid(here.Child("vendorid", "vendorid"), id.VendorID, "must have at most 12 characters"))
	}
	if id := h.VendorID; id != nil && strings.Contains(id.VendorID, ",") {
		l = append(l, field.Invalid(here.Child("vendorid", "vendorid"), id.VendorID, "must not contain a comma"))
	}
	if on(h.EVMCS) {
		l = append(l, vmxFeature(at.Child("domain", "cpu", "features"), d.CPU)...)
	}
	return l
}

func on(f *vmi.FeatureState) bool { return f != nil && enabled(f.Enabled) }

// vmxFeature checks that a guest with evmcs can run guests.
func vmxFeature(at *field.Path, c *vmi.CPU) field.ErrorList {
	const need = "features.hyperv.evmcs needs the processor feature vmx with the policy require"
	var all []vmi.CPUFeature
	if c != nil {
		all = c.Features
	}
	i := slices.IndexFunc(all, func(f vmi.CPUFeature) bool { return f.Name == "vmx" })
	if i < 0 {
		return field.ErrorList{field.Required(at, need)}
	}
	if all[i].Policy != vmi.CPUFeatureRequire {
		return field.ErrorList{field.Invalid(at.Index(i).Child("policy"), all[i].Policy, need)}
	}
	return nil
}
