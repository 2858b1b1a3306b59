package metrics

import "github.com/podvisor/podvisor/launcher/protocol"

// second is one in nanoseconds.
const second = 1e9

// table are the metrics of VMIs. One more is an entry here, and what it reads is a name in
// launcher/protocol's stats.go.
var table = []Metric{
	{
		Name: "kubevirt_vmi_vcpu_seconds_total", Type: Counter, labels: []string{"id", "state"},
		Help: "Seconds that a processor of the guest has run. id is its number, state is what it does now: running, blocked, offline or unknown.",
		read: each(protocol.VCPUTime, second, number, vcpuState),
	},
}
