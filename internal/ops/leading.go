package ops

import "github.com/prometheus/client_golang/prometheus"

// Leading registers the metric that says whether this process is the one of
// several that works, and returns the function that sets it.
func Leading(reg prometheus.Registerer) func(leads bool) {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "kubevirt_virt_controller_leading_status", Help: "1 if this process is the one that works."})
	reg.MustRegister(g)
	return func(leads bool) { g.Set(map[bool]float64{true: 1}[leads]) }
}
