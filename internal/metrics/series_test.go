package metrics

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/series"
)

// collector collects series.
type collector struct {
	all    []series.Series
	faults []error
}

func (c *collector) Describe(chan<- *prometheus.Desc) {}

func (c *collector) Collect(out chan<- prometheus.Metric) {
	s := NewSender(out)
	for _, one := range c.all {
		c.faults = append(c.faults, s.Send(one))
	}
}

func TestWhatWouldFailAScrapeIsLeftOut(t *testing.T) {
	t.Parallel()
	info := &series.Info{Name: "kubevirt_some", Type: series.Gauge, Help: "Some."}
	one := func(value float64, labels ...series.Label) series.Series {
		return series.Series{Info: info, Labels: labels, Value: value}
	}
	a, b := series.Label{Name: "a", Value: "1"}, series.Label{Name: "b", Value: "2"}
	c := &collector{all: []series.Series{one(1, a, b), one(2, a, b), one(3, a), one(4, series.Label{Name: "a", Value: "\xff"}), one(5, a, a)}}
	reg := prometheus.NewRegistry()
	reg.MustRegister(c)
	got, err := reg.Gather()
	require.NoError(t, err)
	var values []float64
	for _, m := range got[0].GetMetric() {
		values = append(values, m.GetGauge().GetValue())
	}
	require.ElementsMatch(t, []float64{1, 3}, values)
	require.NoError(t, c.faults[1])
	require.Error(t, c.faults[3])
	require.Error(t, c.faults[4])
}
