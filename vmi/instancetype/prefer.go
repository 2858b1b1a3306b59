package instancetype

import (
	"slices"

	"github.com/podvisor/podvisor/vmi"
)

// prefer gives the VMI what the preference says where it leaves something open. What is
// attached automatically is there already.
func prefer(v *applied, p *VirtualMachinePreferenceSpec) {
	s := v.spec
	d := &s.Domain
	if p.CPU != nil {
		preferCPU(d, p.CPU.PreferredCPUFeatures)
	}
	if p.Devices != nil {
		preferDevices(s, p.Devices)
	}
	if p.Features != nil {
		preferFeatures(d, p.Features)
	}
	if p.Firmware != nil {
		preferFirmware(d, p.Firmware)
	}
	if p.Clock != nil {
		preferClock(d, p.Clock)
	}
	if t := p.machineType(); t != "" && (d.Machine == nil || d.Machine.Type == "") {
		d.Machine = &vmi.Machine{Type: t}
	}
	if p.PreferredSubdomain != nil {
		open(&s.Subdomain, *p.PreferredSubdomain)
	}
	absent(&s.TerminationGracePeriodSeconds, p.PreferredTerminationGracePeriodSeconds)
	if p.PreferredArchitecture != nil {
		open(&s.Architecture, *p.PreferredArchitecture)
	}
	for _, k := range sortedKeys(p.Annotations) {
		if _, ok := v.annotations[k]; !ok {
			v.set(k, p.Annotations[k])
		}
	}
	if l := p.PreferredLaunchSecurity; l != nil && d.LaunchSecurity == nil {
		d.LaunchSecurity = l.DeepCopy()
	}
}

// machineType is the preferred one. Empty: there is none.
func (p *VirtualMachinePreferenceSpec) machineType() string {
	if p.MachineType == nil {
		return ""
	}
	return p.MachineType.PreferredMachineType
}

// open fills a word that is empty.
func open[T ~string](field *T, preferred T) {
	if *field == "" {
		*field = preferred
	}
}

// absent fills a value that is not set.
func absent[T any](field **T, preferred *T) {
	if *field == nil && preferred != nil {
		*field = new(*preferred)
	}
}

func preferCPU(d *vmi.DomainSpec, features []vmi.CPUFeature) {
	if d.CPU == nil && len(features) > 0 {
		d.CPU = &vmi.CPU{}
	}
	for _, f := range features {
		if !slices.ContainsFunc(d.CPU.Features, func(has vmi.CPUFeature) bool { return has.Name == f.Name }) {
			d.CPU.Features = append(d.CPU.Features, f)
		}
	}
}

func preferFeatures(d *vmi.DomainSpec, p *FeaturePreferences) {
	p = p.DeepCopy() // what is taken of it is the VMI's alone
	if d.Features == nil {
		d.Features = &vmi.Features{}
	}
	f := d.Features
	if p.PreferredAcpi != nil {
		f.ACPI = *p.PreferredAcpi
	}
	absent(&f.APIC, p.PreferredApic)
	absent(&f.KVM, p.PreferredKvm)
	absent(&f.PVSpinlock, p.PreferredPvspinlock)
	absent(&f.SMM, p.PreferredSmm)
	if h := p.PreferredHyperv; h != nil {
		if f.Hyperv == nil {
			f.Hyperv = &vmi.FeatureHyperv{}
		}
		preferHyperv(f.Hyperv, h)
	}
}

func preferHyperv(h, p *vmi.FeatureHyperv) {
	absent(&h.Relaxed, p.Relaxed)
	absent(&h.VAPIC, p.VAPIC)
	absent(&h.Spinlocks, p.Spinlocks)
	absent(&h.VPIndex, p.VPIndex)
	absent(&h.Runtime, p.Runtime)
	absent(&h.SyNIC, p.SyNIC)
	absent(&h.SyNICTimer, p.SyNICTimer)
	absent(&h.Reset, p.Reset)
	absent(&h.VendorID, p.VendorID)
	absent(&h.Frequencies, p.Frequencies)
	absent(&h.Reenlightenment, p.Reenlightenment)
	absent(&h.TLBFlush, p.TLBFlush)
	absent(&h.IPI, p.IPI)
	absent(&h.EVMCS, p.EVMCS)
}

func preferFirmware(d *vmi.DomainSpec, p *FirmwarePreferences) {
	p = p.DeepCopy()
	if d.Firmware == nil {
		d.Firmware = &vmi.Firmware{}
	}
	if d.Firmware.Bootloader == nil {
		d.Firmware.Bootloader = &vmi.Bootloader{}
	}
	b := d.Firmware.Bootloader
	chosen := func() bool { return b.BIOS != nil || b.EFI != nil }
	if isTrue(p.PreferredUseBios) && !chosen() {
		b.BIOS = &vmi.BIOS{}
	}
	if b.BIOS != nil {
		absent(&b.BIOS.UseSerial, p.PreferredUseBiosSerial)
	}
	if p.PreferredEfi != nil && !chosen() {
		b.EFI = p.PreferredEfi
		return
	}
	if isTrue(p.PreferredUseEfi) && !chosen() {
		b.EFI = &vmi.EFI{}
	}
	if b.EFI != nil {
		absent(&b.EFI.SecureBoot, p.PreferredUseSecureBoot)
	}
}

func isTrue(b *bool) bool { return b != nil && *b }

func preferClock(d *vmi.DomainSpec, p *ClockPreferences) {
	p = p.DeepCopy()
	if d.Clock == nil {
		d.Clock = &vmi.Clock{}
	}
	if o := p.PreferredClockOffset; o != nil && d.Clock.UTC == nil && d.Clock.Timezone == nil {
		d.Clock.ClockOffset = *o
	}
	absent(&d.Clock.Timer, p.PreferredTimer)
}
