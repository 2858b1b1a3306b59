package domain

import (
	"strconv"

	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/vmi"
)

const (
	// sector is the size of a block that every guest knows.
	sector = 512
	// page is the largest logical block that guests with pages of 4096 bytes take.
	page = 4096
	// largestBlock is the largest block that QEMU takes.
	largestBlock = 2 << 20
)

// blockIO is the size of the blocks that the guest sees. Nil: QEMU's, of 512 bytes.
func blockIO(d vmi.Disk, from Disk) *libvirtxml.DomainDiskBlockIO {
	switch b := d.BlockSize; {
	case b == nil:
		return nil
	case b.Custom != nil:
		return &libvirtxml.DomainDiskBlockIO{LogicalBlockSize: b.Custom.Logical, PhysicalBlockSize: b.Custom.Physical}
	case !matches(b):
		return nil
	}
	out := matched(from)
	if bus(d) == vmi.DiskBusSATA {
		out.LogicalBlockSize = sector
	}
	return &out
}

func matches(b *vmi.BlockSize) bool {
	return b.MatchVolume != nil && isOn(b.MatchVolume.Enabled, true)
}

// matched are the blocks of what the disk is in. A logical block is never larger than
// a page, since a guest that cannot cache it cannot use the disk.
func matched(from Disk) libvirtxml.DomainDiskBlockIO {
	physical := block(from.Blocks.PhysicalBytes, largestBlock)
	return libvirtxml.DomainDiskBlockIO{
		LogicalBlockSize:  min(block(from.Blocks.LogicalBytes, page), physical),
		PhysicalBlockSize: physical,
	}
}

// block is the size of a block, or the next that is right: a power of two from 512 to
// most.
func block(size int64, most uint) uint {
	n := uint(sector)
	for int64(n) < size && n < most {
		n *= 2
	}
	return n
}

// discardGranularity is the smallest piece that the guest can give back. 0: QEMU's
// default, a logical block.
func discardGranularity(d vmi.Disk, from Disk) uint {
	b := d.BlockSize
	switch {
	case b == nil || d.LUN != nil:
		return 0
	case b.Custom != nil && b.Custom.DiscardGranularity != nil:
		return *b.Custom.DiscardGranularity
	case bus(d) == vmi.DiskBusSATA:
		return 0 // a sector, and QEMU takes no other
	case b.Custom == nil && matches(b) && from.Blocks.DiscardBytes > 0:
		logical := int64(blockIO(d, from).LogicalBlockSize)
		return uint((from.Blocks.DiscardBytes + logical - 1) / logical * logical)
	}
	return 0
}

// override sets the discard granularity of a device. libvirt before 11.6 has no word
// for it and passes it to QEMU so.
func (b *Draft) override(alias string, discard uint) {
	if discard == 0 {
		return
	}
	if b.Domain.QEMUOverride == nil {
		b.Domain.QEMUOverride = &libvirtxml.DomainQEMUOverride{}
	}
	b.Domain.QEMUOverride.Devices = append(b.Domain.QEMUOverride.Devices, libvirtxml.DomainQEMUOverrideDevice{
		Alias: alias,
		Frontend: libvirtxml.DomainQEMUOverrideFrontend{Properties: []libvirtxml.DomainQEMUOverrideProperty{
			{Name: "discard_granularity", Type: "unsigned", Value: strconv.FormatUint(uint64(discard), 10)},
		}},
	})
}
