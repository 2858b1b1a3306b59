package domain

import (
	"fmt"

	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/vmi"
)

// memory adds the memory that the guest sees.
func memory(b *build) error {
	m := b.spec.GuestMemory()
	if m.Value() < 1<<20 {
		return fmt.Errorf("spec.domain.memory.guest: the guest has %s of memory and needs 1Mi or more, here or in spec.domain.resources.requests.memory: %w", m.String(), vmi.ErrInvalid)
	}
	b.domain.Memory = &libvirtxml.DomainMemory{Value: uint(m.Value()), Unit: "b"}
	return nil
}
