package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/podvisor/podvisor/internal/series"
)

var leading = series.Info{Name: "kubevirt_virt_controller_leading_status", Type: series.Gauge, Help: "1 if this process is the one that works."}

// Leading is the metric that is 1 while this process is the one of several that works.
func Leading() prometheus.Gauge { return prometheus.NewGauge(prometheus.GaugeOpts(opts(leading))) }
