package metrics

import (
	"slices"
	"strings"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// Observation is what is known of a VMI when metrics are read.
type Observation struct {
	// Instance is the VMI, with defaults applied.
	Instance *vmi.VirtualMachineInstance
	// Stats are what its launcher counted, sanitized.
	Stats protocol.Stats
}

// Type says how the values of a metric follow each other.
type Type string

// The types of metrics.
const (
	// Counter only grows, as long as the domain is the same.
	Counter Type = "counter"
	// Gauge goes up and down.
	Gauge Type = "gauge"
)

// Metric is a metric of VMIs.
type Metric struct {
	// Name and Help are as they are served.
	Name, Help string
	// Type is how its values follow each other.
	Type Type
	// labels are those that it has beside those of the VMI.
	labels []string
	// read calls add with each value and its labels, in the order of labels.
	read func(o Observation, add func(value float64, labels ...string))
}

// Label is a label of a series.
type Label struct{ Name, Value string }

// Series is one series with its present value.
type Series struct {
	Metric *Metric
	// Labels are sorted by name. None is empty.
	Labels []Label
	Value  float64
}

// All are the metrics of VMIs.
func All() []Metric { return slices.Clone(table) }

// Of are the series of a VMI. Each has other labels: of two that would be the same the
// first is there.
func Of(o Observation) []Series {
	var out []Series
	common := labels(o.Instance)
	for _, m := range All() {
		seen := map[string]bool{}
		m.read(o, func(value float64, own ...string) {
			if key := strings.Join(own, "\x00"); !seen[key] {
				seen[key] = true
				out = append(out, Series{Metric: &m, Labels: sorted(common, m.labels, own), Value: value})
			}
		})
	}
	return out
}
