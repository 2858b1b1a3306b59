package domain

import (
	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/vmi"
)

// diskThreads are the I/O threads of the disks on the bus virtio, by their aliases;
// threads are counted from 1. A disk that is not in it is served by QEMU's main
// thread.
//
// A disk with a dedicatedIOThread has one for itself. The others take turns on those
// of the policy: one with shared, those of the pool with supplementalPool, and with
// auto as many as there are disks, up to twice the processors less the dedicated ones
// and at least one. QEMU before 9.0 serves a disk by one thread, so a disk of a pool
// has one of its threads and not all.
func diskThreads(spec *vmi.DomainSpec) map[string]uint {
	var sharing, alone []string
	for _, d := range spec.Devices.Disks {
		switch {
		case bus(d) != vmi.DiskBusVirtio:
		case isOn(d.DedicatedIOThread, false):
			alone = append(alone, DiskAlias(d.Name))
		default:
			sharing = append(sharing, DiskAlias(d.Name))
		}
	}
	out, common := map[string]uint{}, commonThreads(spec, len(sharing), len(alone))
	if common > 0 {
		for i, alias := range sharing {
			out[alias] = uint(i)%common + 1
		}
	}
	for i, alias := range alone {
		out[alias] = common + uint(i) + 1
	}
	return out
}

// commonThreads is the number of threads that disks share.
func commonThreads(spec *vmi.DomainSpec, sharing, alone int) uint {
	if sharing == 0 {
		return 0
	}
	switch spec.IOThreadsPolicy {
	case vmi.IOThreadsShared:
		return 1
	case vmi.IOThreadsAuto:
		return uint(min(sharing, max(2*int(spec.CPU.VCPUs())-alone, 1)))
	}
	return uint(min(spec.IOThreadPool(), uint32(sharing)))
}

// setIOThreads adds the threads that serve disks.
func setIOThreads(d *libvirtxml.Domain, threads map[string]uint) {
	for _, n := range threads {
		d.IOThreads = max(d.IOThreads, n)
	}
}
