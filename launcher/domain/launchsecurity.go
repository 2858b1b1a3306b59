package domain

import (
	"errors"
	"fmt"
	"strings"

	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/vmi"
)

// The bits of a policy of SEV.
const (
	sevNoDebug        = 1 << 0
	sevEncryptedState = 1 << 2
)

// launchSecurity keeps the guest's memory from the node. Where the bit of encrypted
// pages is, and how many bits of an address it costs, libvirt asks the processor.
func launchSecurity(b *Draft) error {
	l := b.Spec.LaunchSecurity
	if l == nil {
		return nil
	}
	var faults []error
	if !b.Host.KVM {
		faults = append(faults, fmt.Errorf("spec.domain.launchSecurity: the guest is kept from its node by the processor, which needs KVM: %w", vmi.ErrInvalid))
	}
	if b.Host.Arch != archS390X && isOn(b.Spec.Devices.UseVirtioTransitional, false) {
		faults = append(faults, fmt.Errorf("%s: the legacy interface of virtio reads memory that launchSecurity keeps from the node: leave one out: %w",
			devicesPath.Child("useVirtioTransitional"), vmi.ErrInvalid))
	}
	switch {
	case b.Host.Arch == archS390X:
		b.Domain.LaunchSecurity = &libvirtxml.DomainLaunchSecurity{S390PV: &libvirtxml.DomainLaunchSecurityS390PV{}}
	case l.SEV != nil:
		policy := uint(sevNoDebug)
		if l.EncryptsState() {
			policy |= sevEncryptedState
		}
		b.Domain.LaunchSecurity = &libvirtxml.DomainLaunchSecurity{SEV: &libvirtxml.DomainLaunchSecuritySEV{Policy: &policy, DHCert: l.SEV.DHCert, Session: l.SEV.Session}}
	}
	return errors.Join(faults...)
}

// shareBuffers makes the guest's virtio devices use memory that the guest has shared
// with the node: they cannot read the rest.
func shareBuffers(b *Draft) error {
	if b.Domain.LaunchSecurity == nil {
		return nil
	}
	for _, d := range b.virtio() {
		if d.Share != nil {
			d.Share()
		}
	}
	return nil
}

// switchedOn is a switch in libvirt's words.
const switchedOn = "on"

func isVirtio(model string) bool { return strings.HasPrefix(model, "virtio") }
