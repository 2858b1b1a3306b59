package validate

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
)

// onlyX86 refuses for other architectures what only processors of x86 and their boards
// have.
func onlyX86(at *field.Path, d *vmi.DomainSpec, arch string) field.ErrorList {
	if arch == defaults.AMD64 {
		return nil
	}
	f := d.Features
	if f == nil {
		f = &vmi.Features{}
	}
	var t vmi.Timer
	if d.Clock != nil && d.Clock.Timer != nil {
		t = *d.Clock.Timer
	}
	features, timers := at.Child("features"), at.Child("clock", "timer")
	var l field.ErrorList
	for _, n := range []struct {
		at    *field.Path
		named bool
	}{
		{features.Child("apic"), f.APIC != nil},
		{features.Child("hyperv"), f.Hyperv != nil},
		{features.Child("hypervPassthrough"), f.HypervPassthrough != nil},
		{features.Child("kvm"), f.KVM != nil},
		{features.Child("pvspinlock"), f.PVSpinlock != nil},
		{features.Child("smm"), f.SMM != nil},
		{timers.Child("hpet"), t.HPET != nil},
		{timers.Child("hyperv"), t.Hyperv != nil},
		{timers.Child("kvm"), t.KVM != nil},
		{timers.Child("pit"), t.PIT != nil},
		{timers.Child("rtc"), t.RTC != nil},
	} {
		if n.named {
			l = append(l, field.Invalid(n.at, field.OmitValueType{}, "is for amd64 VMIs only, this one is "+arch+": leave it out"))
		}
	}
	return l
}
