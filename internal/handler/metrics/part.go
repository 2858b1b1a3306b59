package metrics

import (
	"strconv"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// each reads a number of each part of a domain that it is counted of, in units of so many,
// with labels.
func each(stat protocol.Stat, unit float64, labels ...func(protocol.Part) string) func(Observation, func(float64, ...string)) {
	return func(o Observation, add func(float64, ...string)) {
		for _, p := range o.Stats.Of(stat.Group()) {
			v, ok := p.Values[stat]
			if !ok || p.Number >= most(o.Instance, p.Group) {
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

// most is how many parts of a group the spec of the VMI has room for.
func most(v *vmi.VirtualMachineInstance, g protocol.Group) int {
	if g == protocol.VCPU {
		return int(v.Spec.Domain.CPU.VCPUs())
	}
	return 1 // the domain itself
}

// number is the number of the part.
func number(p protocol.Part) string { return strconv.Itoa(p.Number) }

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
