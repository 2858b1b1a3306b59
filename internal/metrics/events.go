package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/podvisor/podvisor/internal/series"
)

var eventsDropped = series.Info{
	Name: "podvisor_events_dropped_total", Type: series.Counter,
	Help: "Events that were not written: of objects with too many, and while the API server was away for long.",
}

// EventsDropped is podvisor_events_dropped_total: how many events were not written and will
// not be. Count is called when the metrics are read.
func EventsDropped(count func() int64) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts(opts(eventsDropped)), func() float64 { return float64(count()) })
}
