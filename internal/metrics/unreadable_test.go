package metrics

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

func TestWhatCannotBeDecodedIsCountedByResource(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	reg.MustRegister(Unreadable("virtualmachineinstances", func() int { return 2 }), Unreadable("kubevirts", func() int { return 0 }))
	all, err := reg.Gather()
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, "podvisor_unreadable_objects", all[0].GetName())
	got := map[string]float64{}
	for _, m := range all[0].GetMetric() {
		got[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
	}
	require.Equal(t, map[string]float64{"virtualmachineinstances": 2, "kubevirts": 0}, got)
}
