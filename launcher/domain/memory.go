package domain

import (
	"fmt"

	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/vmi"
)

// memorySlots are the places for devices with more memory: one device, which can be
// resized, is enough.
const memorySlots = 1

// memory adds the memory that the guest sees, and how much it can be given while it
// runs.
func memory(b *Draft) error {
	m := b.Spec.GuestMemory()
	if m.Value() < 1<<20 {
		return fmt.Errorf("spec.domain.memory.guest: the guest has %s of memory and needs 1Mi or more, here or in spec.domain.resources.requests.memory: %w", m.String(), vmi.ErrInvalid)
	}
	b.Domain.Memory = &libvirtxml.DomainMemory{Value: uint(m.Value()), Unit: "b"}
	if most := b.Spec.Memory; most != nil && most.MaxGuest != nil && most.MaxGuest.Cmp(m) > 0 {
		b.Domain.MaximumMemory = &libvirtxml.DomainMaxMemory{Value: uint(most.MaxGuest.Value()), Unit: "b", Slots: memorySlots}
	}
	return nil
}
