package metrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/podvisor/podvisor/internal/series"
)

// valueTypes are the types of metrics as Prometheus has them.
var valueTypes = map[series.Type]prometheus.ValueType{series.Counter: prometheus.CounterValue, series.Gauge: prometheus.GaugeValue}

// Sender sends series to a scrape. It is made for one. What would fail the scrape is left out:
// a series that is not valid, and of two with the same labels the second.
type Sender struct {
	to   chan<- prometheus.Metric
	sent map[string]bool
}

// NewSender makes a Sender of the series of a scrape.
func NewSender(to chan<- prometheus.Metric) *Sender {
	return &Sender{to: to, sent: map[string]bool{}}
}

// Send sends a series. The error says why it is left out.
func (s *Sender) Send(one series.Series) error {
	var names, values []string
	for _, l := range one.Labels {
		names, values = append(names, l.Name), append(values, l.Value)
	}
	m, err := prometheus.NewConstMetric(prometheus.NewDesc(one.Name, one.Help, names, nil), valueTypes[one.Type], one.Value, values...)
	if err != nil {
		return err
	}
	key := one.Name + "\xff" + strings.Join(names, "\xff") + "\xff" + strings.Join(values, "\xff")
	if !s.sent[key] {
		s.sent[key] = true
		s.to <- m
	}
	return nil
}
