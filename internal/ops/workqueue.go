package ops

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"
)

// queueMetrics are the metrics of work queues, each by the name of the queue.
type queueMetrics struct {
	depth, unfinished, longest *prometheus.GaugeVec
	adds, retries              *prometheus.CounterVec
	waited, worked             *prometheus.HistogramVec
}

// WorkQueues registers kubevirt_workqueue_depth and its siblings, and returns what
// sets them for the queues that are made with it.
func WorkQueues(reg prometheus.Registerer) workqueue.MetricsProvider {
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
	m := queueMetrics{
		depth:      gauge("depth", "Keys that wait in the work queue."),
		adds:       counter("adds_total", "Keys that were added to the work queue."),
		retries:    counter("retries_total", "Keys that were added to the work queue again after an error."),
		waited:     histogram("queue_duration_seconds", "How long a key waits in the work queue."),
		worked:     histogram("work_duration_seconds", "How long it takes to handle a key."),
		unfinished: gauge("unfinished_work_seconds", "Sum of the times that the keys in work have taken so far."),
		longest:    gauge("longest_running_processor_seconds", "Time that the oldest key in work has taken so far."),
	}
	reg.MustRegister(m.depth, m.adds, m.retries, m.waited, m.worked, m.unfinished, m.longest)
	return m
}

func (m queueMetrics) NewDepthMetric(name string) workqueue.GaugeMetric {
	return m.depth.WithLabelValues(name)
}

func (m queueMetrics) NewAddsMetric(name string) workqueue.CounterMetric {
	return m.adds.WithLabelValues(name)
}

func (m queueMetrics) NewRetriesMetric(name string) workqueue.CounterMetric {
	return m.retries.WithLabelValues(name)
}

func (m queueMetrics) NewLatencyMetric(name string) workqueue.HistogramMetric {
	return m.waited.WithLabelValues(name)
}

func (m queueMetrics) NewWorkDurationMetric(name string) workqueue.HistogramMetric {
	return m.worked.WithLabelValues(name)
}

func (m queueMetrics) NewUnfinishedWorkSecondsMetric(name string) workqueue.SettableGaugeMetric {
	return m.unfinished.WithLabelValues(name)
}

func (m queueMetrics) NewLongestRunningProcessorSecondsMetric(name string) workqueue.SettableGaugeMetric {
	return m.longest.WithLabelValues(name)
}
