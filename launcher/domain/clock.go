package domain

import (
	"strconv"

	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/vmi"
)

// clock adds what the guest's clock shows at start, and the timers that the spec
// switches.
func clock(b *Draft) error {
	c := b.Spec.Clock
	if c == nil {
		return nil
	}
	out := &libvirtxml.DomainClock{Offset: "utc"}
	switch {
	case c.UTC != nil && c.UTC.OffsetSeconds != nil:
		out.Adjustment = strconv.Itoa(*c.UTC.OffsetSeconds)
	case c.UTC != nil:
		out.Adjustment = "reset"
	case c.Timezone != nil && *c.Timezone != "":
		out.Offset, out.TimeZone = "timezone", *c.Timezone
	}
	if c.Timer != nil && b.Host.Arch == archX86 {
		out.Timer = b.timers(c.Timer)
	}
	b.Domain.Clock = out
	return nil
}

// timers are those that the spec names. Emulation has no paravirtual clocks, and no
// policy for the ticks of the PIT, which KVM has in the kernel: there, they are left
// out, so that a manifest for KVM starts.
func (b *Draft) timers(t *vmi.Timer) []libvirtxml.DomainTimer {
	var all []libvirtxml.DomainTimer
	if r := t.RTC; r != nil {
		all = append(all, libvirtxml.DomainTimer{Name: "rtc", Present: present(r.Enabled), TickPolicy: string(r.TickPolicy), Track: string(r.Track)})
	}
	if p := t.PIT; p != nil {
		policy := string(p.TickPolicy)
		if !b.Host.KVM {
			policy = ""
		}
		all = append(all, libvirtxml.DomainTimer{Name: "pit", Present: present(p.Enabled), TickPolicy: policy})
	}
	if k := t.KVM; k != nil && b.Host.KVM {
		all = append(all, libvirtxml.DomainTimer{Name: "kvmclock", Present: present(k.Enabled)})
	}
	if h := t.HPET; h != nil {
		all = append(all, libvirtxml.DomainTimer{Name: "hpet", Present: present(h.Enabled), TickPolicy: string(h.TickPolicy)})
	}
	if h := t.Hyperv; h != nil && b.Host.KVM {
		all = append(all, libvirtxml.DomainTimer{Name: "hypervclock", Present: present(h.Enabled)})
	}
	return all
}

// present is a timer's switch: the zero value stands for on.
func present(enabled *bool) string {
	if isOn(enabled, true) {
		return "yes"
	}
	return "no"
}
