package metrics

import "github.com/prometheus/client_golang/prometheus"

// EventsDropped is podvisor_events_dropped_total: how many events were not written and will
// not be. Count is called when the metrics are read.
func EventsDropped(count func() int64) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "podvisor_events_dropped_total",
		Help: "Events that were not written: of objects with too many, and while the API server was away for long.",
	}, func() float64 { return float64(count()) })
}
