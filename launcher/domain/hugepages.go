package domain

import (
	"fmt"

	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/internal/vmi/quantity"
	"github.com/podvisor/podvisor/vmi"
)

// hugepages makes the guest's memory of huge pages of the node, which the pod has
// asked for. They are those of an anonymous file, so that the pod needs no mount.
func hugepages(b *Draft) error {
	if b.Spec.Memory == nil || b.Spec.Memory.Hugepages == nil {
		return nil
	}
	size, err := quantity.Parse(b.Spec.Memory.Hugepages.PageSize)
	if err != nil || size.Value() < 1<<10 {
		return fmt.Errorf("spec.domain.memory.hugepages.pageSize: %q is no size of a page, such as 2Mi: %w", b.Spec.Memory.Hugepages.PageSize, vmi.ErrInvalid)
	}
	m := memoryBacking(b)
	m.MemoryHugePages = &libvirtxml.DomainMemoryHugepages{Hugepages: []libvirtxml.DomainMemoryHugepage{{Size: uint(size.Value() >> 10), Unit: "KiB"}}}
	m.MemorySource = &libvirtxml.DomainMemorySource{Type: "memfd"}
	return nil
}

// memoryBacking is what the guest's memory is made of, to which several parts add.
func memoryBacking(b *Draft) *libvirtxml.DomainMemoryBacking {
	if b.Domain.MemoryBacking == nil {
		b.Domain.MemoryBacking = &libvirtxml.DomainMemoryBacking{}
	}
	return b.Domain.MemoryBacking
}
