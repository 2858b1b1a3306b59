package domain

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"libvirt.org/go/libvirtxml"
)

// HostCPU is a CPU of the node that the pod may use.
type HostCPU struct {
	// ID is its number.
	ID int
	// Node is the number of its NUMA node, Package that of its socket and Core that
	// of its core within the package.
	Node, Package, Core int
}

// dedicated gives each processor of the guest a CPU of the pod for itself, and what
// else QEMU does the CPUs of all, or one of its own.
func dedicated(b *Draft) error {
	c := b.Spec.CPU
	if c == nil || !c.DedicatedCPUPlacement {
		return nil
	}
	n, needs := int(c.VCPUs()), int(c.VCPUs())
	if c.IsolateEmulatorThread {
		needs++
	}
	cpus := ordered(b.Host.CPUs, int(max(c.Threads, 1)))
	if len(cpus) != needs {
		return fmt.Errorf("spec.domain.cpu.dedicatedCpuPlacement: the pod has %d CPUs for itself and the guest needs %d: "+
			"check that the kubelet of the node has the CPU manager policy static", len(cpus), needs)
	}
	tune := &libvirtxml.DomainCPUTune{}
	for i, cpu := range cpus[:n] {
		tune.VCPUPin = append(tune.VCPUPin, libvirtxml.DomainCPUTuneVCPUPin{VCPU: uint(i), CPUSet: strconv.Itoa(cpu)})
	}
	rest := set(cpus[:n])
	if c.IsolateEmulatorThread {
		rest = set(cpus[n:])
	}
	tune.EmulatorPin = &libvirtxml.DomainCPUTuneEmulatorPin{CPUSet: rest}
	b.Domain.CPUTune = tune
	// Where threads are that have no pin, those of disks.
	b.Domain.VCPU.CPUSet = rest
	return nil
}

// ordered are the numbers of the CPUs such that those of a core follow each other.
// For a guest whose cores have two threads, those of which the pod has the whole core
// come first.
func ordered(cpus []HostCPU, threads int) []int {
	all := slices.Clone(cpus)
	cores := map[[2]int]int{}
	for _, c := range all {
		cores[[2]int{c.Package, c.Core}]++
	}
	whole := func(c HostCPU) int {
		if cores[[2]int{c.Package, c.Core}] >= threads {
			return 0
		}
		return 1
	}
	slices.SortFunc(all, func(a, b HostCPU) int {
		return cmp.Or(cmp.Compare(whole(a), whole(b)), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Package, b.Package),
			cmp.Compare(a.Core, b.Core), cmp.Compare(a.ID, b.ID))
	})
	var ids []int
	for _, c := range all {
		ids = append(ids, c.ID)
	}
	return ids
}

// set is a list of CPUs in libvirt's form.
func set(ids []int) string {
	var all []string
	for _, id := range slices.Sorted(slices.Values(ids)) {
		all = append(all, strconv.Itoa(id))
	}
	return strings.Join(all, ",")
}
