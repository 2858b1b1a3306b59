package series

import (
	"slices"
	"strings"
)

// Type says how the values of a metric follow each other.
type Type string

// The types of metrics.
const (
	// Counter only grows, as long as what it counts is the same.
	Counter Type = "counter"
	// Gauge goes up and down.
	Gauge Type = "gauge"
	// Histogram counts values by their size.
	Histogram Type = "histogram"
)

// Info is what is said of a metric, as it is served.
type Info struct {
	// Name and Help are as they are served.
	Name, Help string
	// Type is how its values follow each other.
	Type Type
	// Labels are those of its own: beside those that all series of an object have.
	Labels []string
}

// Metric is a metric of observations of type O.
type Metric[O any] struct {
	Info
	// Common are the labels that all its series of an observation have. Nil: those that
	// [Of] is called with.
	Common func(O) []Label
	// Read calls add with each value and its labels, in the order of Labels.
	Read func(o O, add func(value float64, labels ...string))
}

// Label is a label of a series.
type Label struct{ Name, Value string }

// Series is one series with its present value.
type Series struct {
	*Info
	// Labels are sorted by name. None is empty.
	Labels []Label
	Value  float64
}

// Of are the series of an observation, which have the common labels. Each has other labels: of
// two that would be the same the first is there.
func Of[O any](table []Metric[O], o O, common []Label) []Series {
	var out []Series
	for i := range table {
		m := &table[i]
		labels := common
		if m.Common != nil {
			labels = m.Common(o)
		}
		seen := map[string]bool{}
		m.Read(o, func(value float64, own ...string) {
			if key := strings.Join(own, "\x00"); !seen[key] {
				seen[key] = true
				out = append(out, Series{Info: &m.Info, Labels: sorted(labels, m.Labels, own), Value: value})
			}
		})
	}
	return out
}

// sorted are the labels of a series: the common ones, and its own.
func sorted(common []Label, names, values []string) []Label {
	out := slices.Clone(common)
	for i, name := range names {
		out = append(out, Label{name, values[i]})
	}
	out = slices.DeleteFunc(out, func(l Label) bool { return l.Value == "" })
	slices.SortFunc(out, func(a, b Label) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Infos are the infos of a table.
func Infos[O any](table []Metric[O]) []Info {
	var out []Info
	for _, m := range table {
		out = append(out, m.Info)
	}
	return out
}
