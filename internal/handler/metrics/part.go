package metrics

import (
	"slices"
	"strconv"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// mostFileSystems is how many file systems of a guest have series.
const mostFileSystems = 32

// reader reads values of a VMI and their labels.
type reader func(Observation, func(float64, ...string))

// labeler is the value of a label of a part.
type labeler func(protocol.Part) string

// each reads a number of each part of a domain that it is counted of, in units of so many,
// with labels.
func each(stat protocol.Stat, unit float64, labels ...labeler) reader {
	return func(o Observation, add func(float64, ...string)) {
		for _, p := range o.Stats.Of(stat.Group()) {
			v, ok := p.Values[stat]
			if !ok || !has(o.Instance, p) {
				continue
			}
			var own []string
			for _, l := range labels {
				own = append(own, l(p))
			}
			add(v/unit, own...)
		}
	}
}

// both reads one after the other.
func both(all ...reader) reader {
	return func(o Observation, add func(float64, ...string)) {
		for _, read := range all {
			read(o, add)
		}
	}
}

// dirtied reads how many bytes of memory the guest changes in a second while it is sent.
func dirtied(o Observation, add func(float64, ...string)) {
	for _, p := range o.Stats.Of(protocol.Job) {
		if pages, ok := p.Values[protocol.JobDirtyPages]; ok && p.Number == 0 {
			add(pages * p.Values[protocol.JobPageSize])
		}
	}
}

// has says that the spec of the VMI has room for the part, so that a launcher makes no other.
func has(v *vmi.VirtualMachineInstance, p protocol.Part) bool {
	d := &v.Spec.Domain
	switch p.Group {
	case protocol.VCPU:
		return p.Number < int(d.CPU.VCPUs())
	case protocol.Block:
		return slices.ContainsFunc(d.Devices.Disks, func(d vmi.Disk) bool { return d.Name == p.Name })
	case protocol.Net:
		return slices.ContainsFunc(d.Devices.Interfaces, func(i vmi.Interface) bool { return i.Name == p.Name })
	case protocol.FileSystem:
		return p.Number < mostFileSystems
	}
	return p.Number == 0 // the domain itself
}

// number is the number of the part.
func number(p protocol.Part) string { return strconv.Itoa(p.Number) }

func name(p protocol.Part) string       { return p.Name }
func mountPoint(p protocol.Part) string { return p.MountPoint }
func fileSystem(p protocol.Part) string { return p.Type }

// word is a label that is always the same.
func word(s string) labeler { return func(protocol.Part) string { return s } }

// vcpuStates are the words for the states of processors, by libvirt's numbers.
var vcpuStates = []string{"offline", "running", "blocked"}

func vcpuState(p protocol.Part) string {
	s, ok := p.Values[protocol.VCPUState]
	for number, word := range vcpuStates {
		if ok && s == float64(number) {
			return word
		}
	}
	return "unknown"
}
