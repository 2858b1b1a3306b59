package controller

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Lease says which process works, of several that could.
type Lease struct {
	// Kube holds the Lease. Required.
	Kube kubernetes.Interface
	// Namespace and Name are the Lease's. Required.
	Namespace, Name string
	// Identity is this process, for example its pod's name. It must not be
	// another's. Required.
	Identity string
	// OnChange is called when this process begins to lead and when it ends. Nil:
	// nothing is called.
	OnChange func(leads bool)
}

// How long a leader that does not renew the Lease is waited for, after which time
// without a renewal it stops to lead, and how often it tries.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// Lead waits until this process leads, runs the function, and returns when ctx
// has ended or the lead is lost. The Lease is given back only after the function
// has returned, so that its successor may begin at once. An error means that the
// process should end.
func Lead(ctx context.Context, l Lease, run func(context.Context) error) error {
	if l.OnChange == nil {
		l.OnChange = func(bool) {}
	}
	// The elector must outlive the function, or it would give the Lease back while
	// the function still works.
	elector, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	began := make(chan struct{})
	done := make(chan error, 1)
	e, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: l.Namespace, Name: l.Name},
			Client:     l.Kube.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: l.Identity},
		},
		LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
		ReleaseOnCancel: true,
		Name:            l.Name,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(lead context.Context) {
				close(began)
				l.OnChange(true)
				defer l.OnChange(false)
				work, cancel := context.WithCancel(lead)
				defer cancel()
				defer context.AfterFunc(ctx, cancel)()
				done <- run(work)
				stop()
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("elect a leader by lease %s/%s: %w", l.Namespace, l.Name, err)
	}
	// A process that waits for its turn ends at once.
	defer context.AfterFunc(ctx, func() {
		select {
		case <-began:
		default:
			stop()
		}
	})()
	e.Run(elector)
	select {
	case <-began:
	default:
		return nil
	}
	err = <-done
	if err == nil && ctx.Err() == nil {
		err = fmt.Errorf("the lease %s/%s is lost", l.Namespace, l.Name)
	}
	return err
}
