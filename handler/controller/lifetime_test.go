package controller

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/reconcile"
)

func TestAControllerRunsOnceAndHasItsMetricsWhileItRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	reg := prometheus.NewRegistry()
	w.config.Metrics = reg
	c, err := New(w.config)
	require.NoError(t, err)
	c.guard.reach = w.reach
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	names := func() []string {
		all, err := reg.Gather()
		require.NoError(t, err)
		var out []string
		for _, m := range all {
			out = append(out, m.GetName())
		}
		return out
	}
	require.Eventually(t, func() bool { return len(names()) == 9 }, time.Minute, 5*time.Millisecond)
	require.Contains(t, names(), "kubevirt_workqueue_depth")
	require.Contains(t, names(), "podvisor_unreadable_objects")
	require.Contains(t, names(), "podvisor_events_dropped_total")
	require.ErrorIs(t, c.Run(ctx), reconcile.ErrRunTwice)
	cancel()
	require.NoError(t, <-done)
	require.Empty(t, names())
}

func TestAConfigurationNamesTheFieldsToSet(t *testing.T) {
	t.Parallel()
	_, err := New(Config{Node: "n1"})
	require.EqualError(t, err, "controller.Config: set Client, Events")
}
