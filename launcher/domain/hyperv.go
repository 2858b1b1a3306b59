package domain

import (
	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/vmi"
)

// hyperv are the interfaces of Hyper-V that the guest sees. What one needs of the
// others is decided in the defaults.
func hyperv(h *vmi.FeatureHyperv) *libvirtxml.DomainFeatureHyperV {
	out := &libvirtxml.DomainFeatureHyperV{
		Relaxed:         state(h.Relaxed),
		VAPIC:           state(h.VAPIC),
		VPIndex:         state(h.VPIndex),
		Runtime:         state(h.Runtime),
		Synic:           state(h.SyNIC),
		Reset:           state(h.Reset),
		Frequencies:     state(h.Frequencies),
		ReEnlightenment: state(h.Reenlightenment),
		IPI:             state(h.IPI),
		EVMCS:           state(h.EVMCS),
	}
	if s := h.Spinlocks; s != nil {
		out.Spinlocks = &libvirtxml.DomainFeatureHyperVSpinlocks{DomainFeatureState: switched(s.Enabled)}
		if isOn(s.Enabled, true) && s.Retries != nil {
			out.Spinlocks.Retries = uint(*s.Retries)
		}
	}
	if t := h.SyNICTimer; t != nil {
		out.STimer = &libvirtxml.DomainFeatureHyperVSTimer{DomainFeatureState: switched(t.Enabled)}
		if isOn(t.Enabled, true) {
			out.STimer.Direct = state(t.Direct)
		}
	}
	if t := h.TLBFlush; t != nil {
		out.TLBFlush = &libvirtxml.DomainFeatureHyperVTLBFlush{DomainFeatureState: switched(t.Enabled)}
	}
	if v := h.VendorID; v != nil {
		out.VendorId = &libvirtxml.DomainFeatureHyperVVendorId{DomainFeatureState: switched(v.Enabled)}
		if isOn(v.Enabled, true) {
			out.VendorId.Value = v.VendorID
		}
	}
	return out
}

// state is a feature as libvirt has it, or nil if the spec does not name it.
func state(f *vmi.FeatureState) *libvirtxml.DomainFeatureState {
	if f == nil {
		return nil
	}
	s := switched(f.Enabled)
	return &s
}

// switched is a feature that the spec names.
func switched(enabled *bool) libvirtxml.DomainFeatureState {
	return libvirtxml.DomainFeatureState{State: onOff(isOn(enabled, true))}
}
