package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"

	"github.com/podvisor/podvisor/internal/series"
)

// Queues are kubevirt_workqueue_depth and its siblings, each by the name of the queue.
type Queues struct {
	depth, unfinished, longest *prometheus.GaugeVec
	adds, retries              *prometheus.CounterVec
	waited, worked             *prometheus.HistogramVec
}

var (
	_ workqueue.MetricsProvider = (*Queues)(nil)
	_ prometheus.Collector      = (*Queues)(nil)
)

// The metrics of a work queue.
var (
	depth      = queueInfo("depth", series.Gauge, "Keys that wait in the work queue.")
	adds       = queueInfo("adds_total", series.Counter, "Keys that were added to the work queue.")
	retries    = queueInfo("retries_total", series.Counter, "Keys that were added to the work queue again after an error.")
	waited     = queueInfo("queue_duration_seconds", series.Histogram, "How long a key waits in the work queue.")
	worked     = queueInfo("work_duration_seconds", series.Histogram, "How long it takes to handle a key.")
	unfinished = queueInfo("unfinished_work_seconds", series.Gauge, "Sum of the times that the keys in work have taken so far.")
	longest    = queueInfo("longest_running_processor_seconds", series.Gauge, "Time that the oldest key in work has taken so far.")
)

func queueInfo(name string, t series.Type, help string) series.Info {
	return series.Info{Name: "kubevirt_workqueue_" + name, Type: t, Help: help, Labels: []string{"name"}}
}

// NewQueues makes the metrics of the queues that are made with it.
func NewQueues() *Queues {
	histogram := func(i series.Info) *prometheus.HistogramVec {
		return Histogram(i, prometheus.ExponentialBuckets(10e-9, 10, 10))
	}
	return &Queues{
		depth: gaugeVec(depth), adds: counterVec(adds), retries: counterVec(retries), waited: histogram(waited), worked: histogram(worked),
		unfinished: gaugeVec(unfinished), longest: gaugeVec(longest),
	}
}

func (m *Queues) all() []prometheus.Collector {
	return []prometheus.Collector{m.depth, m.adds, m.retries, m.waited, m.worked, m.unfinished, m.longest}
}

// Describe implements prometheus.Collector.
func (m *Queues) Describe(out chan<- *prometheus.Desc) {
	for _, c := range m.all() {
		c.Describe(out)
	}
}

// Collect implements prometheus.Collector.
func (m *Queues) Collect(out chan<- prometheus.Metric) {
	for _, c := range m.all() {
		c.Collect(out)
	}
}

func (m *Queues) NewDepthMetric(name string) workqueue.GaugeMetric {
	return m.depth.WithLabelValues(name)
}

func (m *Queues) NewAddsMetric(name string) workqueue.CounterMetric {
	return m.adds.WithLabelValues(name)
}

func (m *Queues) NewRetriesMetric(name string) workqueue.CounterMetric {
	return m.retries.WithLabelValues(name)
}

func (m *Queues) NewLatencyMetric(name string) workqueue.HistogramMetric {
	return m.waited.WithLabelValues(name)
}

func (m *Queues) NewWorkDurationMetric(name string) workqueue.HistogramMetric {
	return m.worked.WithLabelValues(name)
}

func (m *Queues) NewUnfinishedWorkSecondsMetric(name string) workqueue.SettableGaugeMetric {
	return m.unfinished.WithLabelValues(name)
}

func (m *Queues) NewLongestRunningProcessorSecondsMetric(name string) workqueue.SettableGaugeMetric {
	return m.longest.WithLabelValues(name)
}
