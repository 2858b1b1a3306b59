package controller

import (
	"context"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/handler/scrape"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

func TestTheMetricsOfAVMIAreServedWhileItsGuestRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.stats = func(context.Context) (protocol.Stats, error) {
		s := protocol.NewStats(map[string]any{"vcpu.0.time": uint64(3e9), "vcpu.0.state": int32(2)})
		s.Parts = append(s.Parts, protocol.Part{Group: "invented", Values: map[protocol.Stat]float64{"vcpu.time": 1}})
		return s, nil
	}
	w.hangs()
	w.launch(running, obey)
	c, _ := w.handle()
	w.phase(vmi.PhaseRunning)
	registry := prometheus.NewRegistry()
	registry.MustRegister(scrape.New(scrape.Config{Guests: c, PerVMI: 100 * time.Millisecond, Fresh: time.Nanosecond}))
	h := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	scraped := func() (lines []string) {
		r := httptest.NewRecorder()
		h.ServeHTTP(r, httptest.NewRequest("GET", "/metrics", nil))
		require.Equal(t, 200, r.Code)
		for line := range strings.Lines(r.Body.String()) {
			if !strings.HasPrefix(line, "#") {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
		return lines
	}
	want := []string{`kubevirt_vmi_vcpu_seconds_total{id="0",name="testvmi",namespace="default",node="n1",state="blocked"} 3`}
	w.eventually("the series is served", func() bool { return slices.Equal(want, scraped()) })

	w.frozen.Store(true)
	require.Equal(t, []string{`podvisor_vmi_stats_failed{name="testvmi",namespace="default"} 1`}, scraped(), "the launcher hangs")
	w.frozen.Store(false)
	w.eventually("the launcher answers again", func() bool { return slices.Equal(want, scraped()) })

	w.change(func(v *vmi.VirtualMachineInstance) { v.DeletionTimestamp = new(metav1.Now()) })
	w.phase(vmi.PhaseSucceeded)
	w.eventually("a VMI that has ended has no series", func() bool { return len(scraped()) == 0 })
	_, err := c.Stats(t.Context(), own)
	require.ErrorIs(t, err, ErrNotHere)
}
