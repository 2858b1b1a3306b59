package ops

import "github.com/prometheus/client_golang/prometheus"

// CountUnreadable registers podvisor_unreadable_objects for a resource, as
// virtualmachineinstances: how many of its objects are stored and cannot be decoded.
// Count is called when the metrics are read.
func CountUnreadable(reg prometheus.Registerer, resource string, count func() int) {
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name:        "podvisor_unreadable_objects",
		Help:        "Objects that are stored and cannot be decoded. The condition of each names the field.",
		ConstLabels: prometheus.Labels{"resource": resource},
	}, func() float64 { return float64(count()) }))
}
