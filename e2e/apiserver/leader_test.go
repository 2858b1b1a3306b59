package apiserver

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/podvisor/podvisor/scheduler/controller"
)

func TestTheLeadIsHandedOnWithoutWaitingForTheLease(t *testing.T) {
	t.Parallel()
	newSpace(t)
	cfg := rest.CopyConfig(world.config)
	cfg.Impersonate.UserName = "system:serviceaccount:kubevirt:virt-controller"
	kube, err := kubernetes.NewForConfig(cfg)
	require.NoError(t, err)
	lead := func(ctx context.Context, id string, leads chan<- string) chan error {
		done := make(chan error, 1)
		go func() {
			l := controller.Lease{Kube: kube, Namespace: "kubevirt", Name: "virt-controller", Identity: id}
			done <- controller.Lead(ctx, l, func(ctx context.Context) error {
				leads <- id
				<-ctx.Done()
				return nil
			})
		}()
		return done
	}
	leads := make(chan string)
	first, stop := context.WithCancel(t.Context())
	firstDone := lead(first, "first", leads)
	require.Equal(t, "first", <-leads)
	second, stopSecond := context.WithCancel(t.Context())
	secondDone := lead(second, "second", leads)

	stop()
	require.NoError(t, <-firstDone)
	began := time.Now()
	require.Equal(t, "second", <-leads)
	t.Logf("the second led %s after the first had ended", time.Since(began).Round(time.Millisecond))
	stopSecond()
	require.NoError(t, <-secondDone)
}

func TestAProcessThatWaitsForTheLeadEndsWithItsContext(t *testing.T) {
	t.Parallel()
	newSpace(t)
	ctx, stop := context.WithCancel(t.Context())
	leads := make(chan struct{})
	l := controller.Lease{Kube: world.kube, Namespace: "kubevirt", Name: "another", Identity: "one"}
	go func() {
		_ = controller.Lead(ctx, l, func(ctx context.Context) error { close(leads); <-ctx.Done(); return nil })
	}()
	<-leads
	waiting, stopWaiting := context.WithCancel(t.Context())
	l.Identity = "two"
	done := make(chan error)
	go func() {
		done <- controller.Lead(waiting, l, func(context.Context) error { t.Error("it leads"); return nil })
	}()
	stopWaiting()
	require.NoError(t, <-done)
	stop()
}
