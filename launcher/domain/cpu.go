package domain

import (
	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/vmi"
)

func vcpu(c *vmi.CPU) *libvirtxml.DomainVCPU {
	return &libvirtxml.DomainVCPU{Placement: "static", Value: uint(c.VCPUs())}
}

// cpu is the node's own processor as far as a guest may be migrated with it, or,
// under emulation, everything that QEMU can emulate.
func cpu(c *vmi.CPU, h Host) *libvirtxml.DomainCPU {
	mode := "host-model"
	if !h.KVM {
		mode = "maximum"
	}
	if c == nil {
		c = &vmi.CPU{}
	}
	return &libvirtxml.DomainCPU{
		Mode: mode,
		Topology: &libvirtxml.DomainCPUTopology{
			Sockets: int(max(c.Sockets, 1)),
			Cores:   int(max(c.Cores, 1)),
			Threads: int(max(c.Threads, 1)),
		},
	}
}
