package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/podvisor/podvisor/internal/series"
)

var unreadable = series.Info{
	Name: "podvisor_unreadable_objects", Type: series.Gauge, Labels: []string{"resource"},
	Help: "Objects that are stored and cannot be decoded. The condition of each names the field.",
}

// Unreadable is podvisor_unreadable_objects of a resource, for example
// virtualmachineinstances: how many of its objects are stored and cannot be decoded.
// Count is called when the metrics are read.
func Unreadable(resource string, count func() int) prometheus.Collector {
	o := opts(unreadable)
	o.ConstLabels = prometheus.Labels{"resource": resource}
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts(o), func() float64 { return float64(count()) })
}
