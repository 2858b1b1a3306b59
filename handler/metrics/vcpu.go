package metrics

import (
	"strconv"

	"github.com/podvisor/podvisor/launcher/protocol"
)

// second is one in nanoseconds.
const second = 1e9

// vcpu are the metrics of the processors of guests.
var vcpu = []Metric{
	{
		Name: "kubevirt_vmi_vcpu_seconds_total", Type: Counter, labels: []string{"id", "state"},
		Help: "Seconds that a processor of the guest has run. id is its number, state is what it does now: running, blocked, offline or unknown.",
		read: ofVCPU(protocol.VCPUTime, second, vcpuID, vcpuState),
	},
}

// ofVCPU reads a number of each processor that the spec has, in units of so many, with labels.
func ofVCPU(stat protocol.Stat, unit float64, labels ...func(protocol.Part) string) func(Observation, func(float64, ...string)) {
	return func(o Observation, add func(float64, ...string)) {
		for _, p := range o.Stats.Of(protocol.VCPU) {
			v, ok := p.Values[stat]
			if !ok || p.Number >= int(o.Instance.Spec.Domain.CPU.VCPUs()) {
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

func vcpuID(p protocol.Part) string { return strconv.Itoa(p.Number) }

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
