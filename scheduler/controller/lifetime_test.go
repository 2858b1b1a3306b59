package controller

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubefake "k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"

	"github.com/podvisor/podvisor/internal/reconcile"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/config/live"
)

// ours are the stacks of the goroutines that stand in this module, client-go or
// controllers of others, and that are not of a test or an HTTP connection.
func ours() []string {
	raw := make([]byte, 8<<20)
	var out []string
	for s := range strings.SplitSeq(string(raw[:runtime.Stack(raw, true)]), "\n\n") {
		if strings.Contains(s, "testing.tRunner") || strings.Contains(s, "net/http") || strings.Contains(s, "vmi/client/fake") {
			continue
		}
		if strings.Contains(s, "podvisor") || strings.Contains(s, "k8s.io/") {
			out = append(out, s)
		}
	}
	return out
}

// requireNoGoroutines waits until no more than these are left.
func requireNoGoroutines(t *testing.T, before int) {
	t.Helper()
	var now []string
	for range 2400 {
		if now = ours(); len(now) <= before {
			return
		}
		time.Sleep(25 * time.Millisecond)
	}
	require.Len(t, now, before, "%s", strings.Join(now, "\n\n"))
}

// newFollowing is a Controller with settings, which are run by the caller, and metrics.
func newFollowing(t *testing.T, reg prometheus.Registerer) (*Controller, *live.Watcher) {
	t.Helper()
	api, err := client.New(fake.New().Config())
	require.NoError(t, err)
	settings, err := live.New(live.Config{KubeVirts: api.KubeVirts("")})
	require.NoError(t, err)
	c, err := New(Config{Client: api, Kube: kubefake.NewClientset(), Launcher: rendering, Settings: settings, Home: "kubevirt", Metrics: reg})
	require.NoError(t, err)
	return c, settings
}

// The tests below count goroutines of the process, so they are not parallel.

func TestAControllerThatNeverRunsLeavesNoGoroutine(t *testing.T) {
	before := len(ours())
	for range 10 {
		c, _ := newFollowing(t, prometheus.NewRegistry())
		c.QueueAll()
	}
	requireNoGoroutines(t, before)
}

func TestAControllerThatEndsBeforeItKnowsTheConfigurationLeavesNoGoroutine(t *testing.T) {
	before := len(ours())
	c, _ := newFollowing(t, prometheus.NewRegistry())
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.NoError(t, c.Run(ctx), "its settings do not run")
	requireNoGoroutines(t, before)
}

var quiet = slog.New(slog.DiscardHandler)

// refusing is a clientset whose Leases can be made unwritable.
type refusing struct {
	*kubefake.Clientset
	mu  sync.Mutex
	off bool
}

func newRefusing() *refusing {
	r := &refusing{Clientset: kubefake.NewClientset()}
	r.PrependReactor("update", "leases", func(ktesting.Action) (bool, k8sruntime.Object, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.off {
			return true, nil, apierrors.NewGenericServerResponse(http.StatusServiceUnavailable, "update", schema.GroupResource{Resource: "leases"}, "lease", "not now", 0, true)
		}
		return false, nil, nil
	})
	return r
}

func (r *refusing) refuse(off bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.off = off
}

func TestALostTermLeavesNoGoroutineAndTheNextOneWorks(t *testing.T) {
	before := len(ours())
	reg := prometheus.NewRegistry()
	kube := newRefusing()
	for term := range 4 {
		kube.refuse(false)
		c, settings := newFollowing(t, reg)
		ctx, cancel := context.WithCancel(t.Context())
		followed := make(chan error, 1)
		if term%2 == 0 { // the lead is lost because the API server is away: nothing is known
			followed <- nil
		} else {
			go func() { followed <- settings.Run(ctx) }()
		}
		l := Lease{Kube: kube, Namespace: "kubevirt", Name: "virt-controller", Identity: "one", Metrics: reg, Logger: quiet,
			Duration: 400 * time.Millisecond, RenewDeadline: 200 * time.Millisecond, RetryPeriod: 20 * time.Millisecond,
			OnChange: func(leads bool) { kube.refuse(leads && term%2 == 0) }}
		var refused sync.WaitGroup
		err := Lead(ctx, l, func(ctx context.Context) error {
			require.InDelta(t, 1, leadingStatus(t, reg), 0)
			if term%2 == 1 { // it is lost when the loops run
				refused.Go(func() {
					c.caches.Wait(ctx)
					kube.refuse(true)
				})
			}
			return c.Run(ctx)
		})
		refused.Wait()
		require.ErrorContains(t, err, "the lease kubevirt/virt-controller is lost")
		cancel()
		require.NoError(t, <-followed)
		left, err := reg.Gather()
		require.NoError(t, err)
		require.Empty(t, left, "the metrics of a term end with it")
	}
	requireNoGoroutines(t, before)
}

func leadingStatus(t *testing.T, reg *prometheus.Registry) float64 {
	t.Helper()
	all, err := reg.Gather()
	require.NoError(t, err)
	for _, m := range all {
		if m.GetName() == "kubevirt_virt_controller_leading_status" {
			return m.GetMetric()[0].GetGauge().GetValue()
		}
	}
	return -1
}

func TestWhoWaitsForItsTurnLeavesNoGoroutine(t *testing.T) {
	before := len(ours())
	kube := kubefake.NewClientset()
	ctx, cancel := context.WithCancel(t.Context())
	leads := make(chan struct{})
	first := make(chan error, 1)
	go func() {
		first <- Lead(ctx, Lease{Kube: kube, Namespace: "a", Name: "b", Identity: "one", Logger: quiet}, func(ctx context.Context) error { close(leads); <-ctx.Done(); return nil })
	}()
	<-leads
	waiting, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	require.NoError(t, Lead(waiting, Lease{Kube: kube, Namespace: "a", Name: "b", Identity: "two", Logger: quiet}, func(context.Context) error { return errors.New("it leads") }))
	cancel()
	require.NoError(t, <-first)
	held, err := kube.CoordinationV1().Leases("a").Get(t.Context(), "b", metav1.GetOptions{})
	require.NoError(t, err)
	require.Empty(t, *held.Spec.HolderIdentity, "the lease is given back")
	requireNoGoroutines(t, before)
}

func TestTheLinesOfClientGoAreInTheLog(t *testing.T) {
	var log bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	l := Lease{Kube: kubefake.NewClientset(), Namespace: "a", Name: "b", Identity: "one", Logger: slog.New(slog.NewTextHandler(&log, nil))}
	require.NoError(t, Lead(ctx, l, func(context.Context) error { cancel(); return nil }))
	require.Contains(t, log.String(), "Successfully acquired lease")
}

func TestASecondRunIsAnError(t *testing.T) {
	c, _ := newFollowing(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, c.Run(ctx))
	require.ErrorIs(t, c.Run(t.Context()), reconcile.ErrRunTwice)
}

func TestALeaseNamesTheFieldsToSet(t *testing.T) {
	err := Lead(t.Context(), Lease{Name: "b"}, func(context.Context) error { return nil })
	require.EqualError(t, err, "controller.Lease: set Identity, Kube, Namespace")
	_, err = New(Config{Client: &client.Client{}, Kube: kubefake.NewClientset(), Launcher: rendering, Settings: &live.Watcher{}})
	require.EqualError(t, err, "controller.Config: set Home, which Settings needs")
}
