package metrics

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

func TestWhatEndsTakesItsMetricsBack(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	all := func() []prometheus.Collector {
		return []prometheus.Collector{Unreadable("kubevirts", func() int { return 1 }), Unreadable("pods", func() int { return 1 })}
	}
	for range 2 {
		unregister, err := Register(reg, all()...)
		require.NoError(t, err)
		_, err = Register(reg, append([]prometheus.Collector{Unreadable("nodes", func() int { return 1 })}, all()...)...)
		require.ErrorContains(t, err, "WrapRegistererWith")
		got, err := reg.Gather()
		require.NoError(t, err)
		require.Len(t, got[0].GetMetric(), 2, "nothing of what failed stays")
		unregister()
		got, err = reg.Gather()
		require.NoError(t, err)
		require.Empty(t, got)
	}
}

func TestTheMetricOfTheLeaderIsSet(t *testing.T) {
	t.Parallel()
	g := Leading()
	reg := prometheus.NewRegistry()
	_, err := Register(reg, g)
	require.NoError(t, err)
	g.Set(1)
	got, err := reg.Gather()
	require.NoError(t, err)
	require.Equal(t, "kubevirt_virt_controller_leading_status", got[0].GetName())
	require.InDelta(t, 1, got[0].GetMetric()[0].GetGauge().GetValue(), 0)
}

func TestWithoutARegistryNothingIsRegistered(t *testing.T) {
	t.Parallel()
	unregister, err := Register(nil, Leading())
	require.NoError(t, err)
	unregister()
}
