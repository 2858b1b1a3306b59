package domain

import (
	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/vmi"
)

// maxVCPUs is the largest number of processors that a domain has: on q35 more need an
// IOMMU, and s390x has fewer.
var maxVCPUs = map[string]uint32{archX86: 255, archS390X: 248, archARM: 512}

// sockets is the number of sockets of the domain, with those that have no processors
// at the start. Where it would have more processors than a domain can have, it has
// fewer spare sockets.
func sockets(c *vmi.CPU, arch string) uint32 {
	now, each := max(c.Sockets, 1), max(c.Cores, 1)*max(c.Threads, 1)
	return max(now, min(c.MaxSockets, maxVCPUs[arch]/max(each, 1)))
}

// topology adds the sockets, and which of their processors are there at the start: the
// first ones. Those of the first socket always stay, and under emulation all do, since
// QEMU ends when it removes one.
func topology(b *Draft, c *vmi.CPU) {
	now, each := uint(c.VCPUs()), uint(max(c.Cores, 1)*max(c.Threads, 1))
	n := sockets(c, b.Host.Arch)
	b.Domain.CPU.Topology = &libvirtxml.DomainCPUTopology{Sockets: int(n), Cores: int(max(c.Cores, 1)), Threads: int(max(c.Threads, 1))}
	all := uint(n) * each
	b.Domain.VCPU = &libvirtxml.DomainVCPU{Placement: "static", Value: all}
	if all == now {
		return
	}
	b.Domain.VCPUs = &libvirtxml.DomainVCPUs{}
	for id := range all {
		v := libvirtxml.DomainVCPUsVCPU{Id: &id, Enabled: yesNo(id < now), Hotpluggable: yesNo(id >= now || id >= each && b.Host.KVM)}
		b.Domain.VCPUs.VCPU = append(b.Domain.VCPUs.VCPU, v)
	}
}
