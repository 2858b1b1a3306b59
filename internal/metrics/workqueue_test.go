package metrics

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/util/workqueue"
)

func TestWorkQueuesAreMeasuredByName(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	queues := NewQueues()
	reg.MustRegister(queues)
	q := workqueue.NewTypedRateLimitingQueueWithConfig(workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Millisecond, time.Millisecond),
		workqueue.TypedRateLimitingQueueConfig[string]{Name: "virt-controller-vmi", MetricsProvider: queues})
	defer q.ShutDown()
	q.Add("a")
	q.Add("b")
	key, _ := q.Get()
	q.AddRateLimited(key)
	q.Done(key)

	all, err := reg.Gather()
	require.NoError(t, err)
	got := map[string]float64{}
	for _, f := range all {
		m := f.GetMetric()[0]
		require.Equal(t, "virt-controller-vmi", m.GetLabel()[0].GetValue())
		got[f.GetName()] = m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
	}
	require.Equal(t, float64(1), got["kubevirt_workqueue_retries_total"])
	require.Equal(t, float64(1), got["kubevirt_workqueue_queue_duration_seconds"])
	require.Equal(t, float64(1), got["kubevirt_workqueue_work_duration_seconds"])
	require.GreaterOrEqual(t, got["kubevirt_workqueue_adds_total"], float64(2))
	for _, name := range []string{"depth", "unfinished_work_seconds", "longest_running_processor_seconds"} {
		require.Contains(t, got, "kubevirt_workqueue_"+name)
	}
}
