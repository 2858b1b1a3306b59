package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"
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

// NewQueues makes the metrics of the queues that are made with it.
func NewQueues() *Queues {
	const prefix = "kubevirt_workqueue_"
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + name, Help: help}, []string{"name"})
	}
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + name, Help: help}, []string{"name"})
	}
	histogram := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: prefix + name, Help: help, Buckets: prometheus.ExponentialBuckets(10e-9, 10, 10),
		}, []string{"name"})
	}
	return &Queues{
		depth:      gauge("depth", "Keys that wait in the work queue."),
		adds:       counter("adds_total", "Keys that were added to the work queue."),
		retries:    counter("retries_total", "Keys that were added to the work queue again after an error."),
		waited:     histogram("queue_duration_seconds", "How long a key waits in the work queue."),
		worked:     histogram("work_duration_seconds", "How long it takes to handle a key."),
		unfinished: gauge("unfinished_work_seconds", "Sum of the times that the keys in work have taken so far."),
		longest:    gauge("longest_running_processor_seconds", "Time that the oldest key in work has taken so far."),
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
