package domain

import (
	"fmt"

	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/vmi"
)

// fits says why a guest cannot have the memory that the spec gives it.
func fits(s *vmi.DomainSpec) error {
	m := s.GuestMemory()
	if m.Value() < 1<<20 {
		return fmt.Errorf("the machine has %s of memory; it needs 1Mi or more in memory.guest or resources.requests.memory: %w", m.String(), vmi.ErrInvalid)
	}
	return nil
}

func memory(s *vmi.DomainSpec) *libvirtxml.DomainMemory {
	m := s.GuestMemory()
	return &libvirtxml.DomainMemory{Value: uint(m.Value()), Unit: "b"}
}
