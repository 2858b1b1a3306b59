package share

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// maxRegions is how many regions the memory of a guest has in a table at most.
	maxRegions = 8
	// regionSize is that of a region in the table.
	regionSize = 32
)

// region is a part of the guest's memory.
type region struct {
	// guest is its address for the guest, and qemu that in QEMU.
	guest, qemu uint64
	// data is the part, which ends mapped.
	data, mapped []byte
}

// memory is the memory of a guest. It does not change; a new one takes its place.
type memory struct{ regions []region }

// mapMemory maps the regions of a table. The descriptors are left to the caller.
func mapMemory(m *message) (*memory, error) {
	words, err := m.words(2)
	if err != nil {
		return nil, err
	}
	n := int(words[0])
	if n > maxRegions || n != len(m.descriptors) || len(m.payload) < 8+n*regionSize {
		return nil, fmt.Errorf("its table of %d regions has %d bytes and %d descriptors", words[0], len(m.payload), len(m.descriptors))
	}
	all := &memory{}
	for i, fd := range m.descriptors {
		r, err := mapRegion(fd, m.payload[8+i*regionSize:])
		if err != nil {
			all.unmap()
			return nil, fmt.Errorf("map region %d: %w", i, err)
		}
		all.regions = append(all.regions, r)
	}
	return all, nil
}

func mapRegion(fd int, entry []byte) (region, error) {
	word := func(i int) uint64 { return binary.NativeEndian.Uint64(entry[8*i:]) }
	guest, size, qemu, offset := word(0), word(1), word(2), word(3)
	if size == 0 || size > math.MaxInt64/4 || offset > math.MaxInt64/4 || guest+size < guest || qemu+size < qemu {
		return region{}, fmt.Errorf("%d bytes at %#x are no memory", size, guest)
	}
	var file unix.Stat_t
	if err := unix.Fstat(fd, &file); err != nil {
		return region{}, err
	}
	if uint64(file.Size) < offset+size {
		return region{}, fmt.Errorf("its file has %d bytes, and %d are needed", file.Size, offset+size)
	}
	mapped, err := unix.Mmap(fd, 0, int(offset+size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_NORESERVE)
	if err != nil {
		return region{}, err
	}
	return region{guest: guest, qemu: qemu, data: mapped[offset:], mapped: mapped}, nil
}

func (m *memory) unmap() {
	for _, r := range m.regions {
		_ = unix.Munmap(r.mapped)
	}
	m.regions = nil
}

// at is the memory of size bytes at an address for the guest, or nil if the guest has
// none there. It is in one region.
func (m *memory) at(address, size uint64) []byte {
	for _, r := range m.regions {
		if from := address - r.guest; address >= r.guest && from <= uint64(len(r.data)) && size <= uint64(len(r.data))-from {
			return r.data[from : from+size : from+size]
		}
	}
	return nil
}

// inQEMU is the same for an address in QEMU.
func (m *memory) inQEMU(address, size uint64) []byte {
	for _, r := range m.regions {
		if from := address - r.qemu; address >= r.qemu && from <= uint64(len(r.data)) && size <= uint64(len(r.data))-from {
			return r.data[from : from+size : from+size]
		}
	}
	return nil
}

// word is a number of 32 bits in the guest's memory, which the guest changes at any
// time. It is nil unless b has it at an address that is a multiple of four.
func word(b []byte) *uint32 {
	if len(b) < 4 || uintptr(unsafe.Pointer(&b[0]))%4 != 0 {
		return nil
	}
	return (*uint32)(unsafe.Pointer(&b[0]))
}
