package leader

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/podvisor/podvisor/scheduler/controller"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi/client"
)

// away is an API server that answers when it is up.
type away struct{ up atomic.Bool }

func (a *away) ServerVersion() (*version.Info, error) {
	if !a.up.Load() {
		return nil, errors.New("connection refused")
	}
	return &version.Info{Major: "1", Minor: "35"}, nil
}

func TestAWrongFlagEndsTheProcessAtOnce(t *testing.T) {
	t.Parallel()
	l := New(Config{Launcher: pod.Launcher{Image: "a"}, ContainerDisks: "floppy", Version: &away{}, Logger: slog.New(slog.DiscardHandler)})
	require.ErrorContains(t, l.Run(t.Context()), `"floppy"`)
}

func TestAProcessThatWaitsForTheAPIServerEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	require.NoError(t, New(Config{Launcher: pod.Launcher{Image: "a"}, Version: &away{}, Logger: slog.New(slog.DiscardHandler)}).Run(ctx))
}

// notFound is a transport to an API server that has nothing.
type notFound struct{}

func (notFound) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	http.NotFound(w, r)
	return w.Result(), nil
}

func TestTheAPIServerAndALostLeaseAreWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, apiServerAndLostLease)
}

// apiServerAndLostLease runs in a bubble: its lease is lost by its time alone.
func apiServerAndLostLease(t *testing.T) {
	vmis, err := client.New(&rest.Config{Host: "http://none", Transport: notFound{}})
	require.NoError(t, err)
	kube := fake.NewClientset()
	var cut atomic.Bool
	kube.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		return cut.Load(), nil, errors.New("the API server does not answer")
	})
	leads := make(chan bool, 10)
	made := 0
	var api away
	l := New(Config{
		Launcher: pod.Launcher{Image: "a"}, Version: &api, Logger: slog.New(slog.DiscardHandler),
		Make: func(p pod.Launcher) (*controller.Controller, error) {
			made++
			require.Equal(t, pod.ImageVolume, p.ContainerDisks)
			return controller.New(controller.Config{Client: vmis, Kube: kube, Launcher: p})
		},
		Lease: controller.Lease{Kube: kube, Namespace: "home", Name: "virt-controller", Identity: "one",
			Duration: 3 * time.Second, RenewDeadline: time.Second, RetryPeriod: 100 * time.Millisecond,
			OnChange: func(is bool) { leads <- is }},
	})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	require.ErrorIs(t, l.Ready(), errVersion)
	p, v := l.Cached("default", "a")
	require.Nil(t, p)
	require.Nil(t, v)
	_, own := l.Rendering("")
	require.False(t, own, "no pod is rendered by it")
	l.QueueAll()
	api.up.Store(true)
	require.True(t, <-leads)
	require.NoError(t, l.Ready())
	first := l.now.Load()
	cut.Store(true)
	require.False(t, <-leads)
	cut.Store(false)
	select {
	case again := <-leads:
		require.True(t, again)
	case err := <-done:
		t.Fatalf("it ended: %v", err)
	}
	require.NotSame(t, first, l.now.Load(), "a Controller runs once")
	stop()
	require.NoError(t, <-done)
	require.Equal(t, 2, made)
}
