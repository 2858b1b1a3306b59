package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/podvisor/podvisor/internal/series"
)

// Infos are the metrics of this package.
func Infos() []series.Info {
	return []series.Info{depth, adds, retries, waited, worked, unfinished, longest, leading, unreadable, eventsDropped}
}

func opts(i series.Info) prometheus.Opts { return prometheus.Opts{Name: i.Name, Help: i.Help} }

func gaugeVec(i series.Info) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts(opts(i)), i.Labels)
}

func counterVec(i series.Info) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts(opts(i)), i.Labels)
}

// Histogram is the histogram of the info, with these buckets.
func Histogram(i series.Info, buckets []float64) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: i.Name, Help: i.Help, Buckets: buckets}, i.Labels)
}
