package domain

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/vmi"
)

// numa adds the memory nodes of the guest: those of the node's CPUs that it has for
// itself, if the spec asks for them, or one for all, if memory can be added to the
// guest. It comes after the processors and the memory.
func numa(b *Draft) error {
	if c := b.Spec.CPU; c != nil && c.NUMA != nil && c.NUMA.GuestMappingPassthrough != nil {
		return passthrough(b)
	}
	if b.Domain.MaximumMemory != nil {
		b.Domain.CPU.Numa = &libvirtxml.DomainNuma{Cell: []libvirtxml.DomainCell{cell(0, span(0, b.Domain.VCPU.Value), b.Domain.Memory.Value)}}
	}
	return nil
}

// passthrough makes a memory node of each one of the node on whose CPUs processors of
// the guest are, with these processors and an equal part of the memory, which is of
// that node.
func passthrough(b *Draft) error {
	if b.Domain.CPUTune == nil || b.Domain.MemoryBacking == nil || b.Domain.MemoryBacking.MemoryHugePages == nil {
		return fmt.Errorf("spec.domain.cpu.numa: the memory nodes of the node need dedicatedCpuPlacement and memory.hugepages: %w", vmi.ErrInvalid)
	}
	at := map[string]int{} // a CPU's memory node
	for _, c := range b.Host.CPUs {
		at[strconv.Itoa(c.ID)] = c.Node
	}
	of := map[int][]string{} // the guest's processors by memory node of the node
	var nodes []int
	for _, pin := range b.Domain.CPUTune.VCPUPin {
		node := at[pin.CPUSet]
		if of[node] == nil {
			nodes = append(nodes, node)
		}
		of[node] = append(of[node], strconv.Itoa(int(pin.VCPU)))
	}
	slices.Sort(nodes)
	if len(nodes) > 0 {
		if spare := span(uint(len(b.Domain.CPUTune.VCPUPin)), b.Domain.VCPU.Value); spare != "" {
			last := nodes[len(nodes)-1]
			of[last] = append(of[last], spare)
		}
	}
	page := &b.Domain.MemoryBacking.MemoryHugePages.Hugepages[0]
	parts, err := shares(b.Domain.Memory.Value, page.Size<<10, len(nodes))
	if err != nil {
		return err
	}
	b.Domain.MemoryBacking.MemoryAllocation = &libvirtxml.DomainMemoryAllocation{Mode: "immediate"}
	b.Domain.CPU.Numa = &libvirtxml.DomainNuma{}
	for i, node := range nodes {
		b.Domain.CPU.Numa.Cell = append(b.Domain.CPU.Numa.Cell, cell(uint(i), strings.Join(of[node], ","), parts[i]))
	}
	return bound(b, nodes)
}

// bound binds the memory of each of the guest's memory nodes to one of the node. Where
// all memory of the pod is of one node, it is there anyway.
func bound(b *Draft, nodes []int) error {
	if len(nodes) == 1 && slices.Equal(b.Host.MemoryNodes, nodes) {
		return nil
	}
	if !b.Host.BindMemory {
		return errors.New("spec.domain.cpu.numa: the seccomp profile of the pod does not let QEMU choose the memory node of its memory (mbind): " +
			"use a node that has one memory node, or let the kubelet give the pod memory of one (memory manager policy Static), or leave numa out")
	}
	b.Domain.NUMATune = &libvirtxml.DomainNUMATune{}
	for i, node := range nodes {
		b.Domain.NUMATune.MemNodes = append(b.Domain.NUMATune.MemNodes, libvirtxml.DomainNUMATuneMemNode{CellID: uint(i), Mode: "strict", Nodeset: strconv.Itoa(node)})
	}
	return nil
}

// shares divides memory among n, in whole pages. The first has what is left over.
func shares(memory, page uint, n int) ([]uint, error) {
	if n == 0 || memory/page < uint(n) {
		return nil, fmt.Errorf("spec.domain.memory.guest: the guest has %d memory nodes, of its CPUs, and fewer huge pages: give it more memory, or smaller pages", n)
	}
	each := memory / page / uint(n) * page
	all := slices.Repeat([]uint{each}, n)
	all[0] += memory - each*uint(n)
	return all, nil
}

func cell(id uint, cpus string, memory uint) libvirtxml.DomainCell {
	return libvirtxml.DomainCell{ID: &id, CPUs: cpus, Memory: memory, Unit: "b"}
}

// span is the processors from one to before another, in libvirt's form. Empty: none.
func span(from, to uint) string {
	switch {
	case from >= to:
		return ""
	case from+1 == to:
		return strconv.Itoa(int(from))
	}
	return fmt.Sprintf("%d-%d", from, to-1)
}
