package metrics

import "github.com/prometheus/client_golang/prometheus"

// Unreadable is podvisor_unreadable_objects of a resource, for example
// virtualmachineinstances: how many of its objects are stored and cannot be decoded.
// Count is called when the metrics are read.
func Unreadable(resource string, count func() int) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name:        "podvisor_unreadable_objects",
		Help:        "Objects that are stored and cannot be decoded. The condition of each names the field.",
		ConstLabels: prometheus.Labels{"resource": resource},
	}, func() float64 { return float64(count()) })
}
