package controller

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/internal/metrics"
	"github.com/podvisor/podvisor/internal/reconcile"
)

// Lease says which process works, of several that could.
type Lease struct {
	// Kube holds the Lease. It needs a limit of requests of its own, so that a renewal does
	// not wait behind other work. Required.
	Kube kubernetes.Interface
	// Namespace and Name are the Lease's. Required.
	Namespace, Name string
	// Identity is this process, for example its pod's name. It must not be
	// another's. Required.
	Identity string
	// Duration is how long other processes wait for a leader that does not renew the
	// Lease: the longest time without a leader after one was killed. 0: 15 s.
	Duration time.Duration
	// RenewDeadline is how long a leader tries to renew the Lease, after which it stops to
	// lead. It is shorter than Duration. 0: 10 s.
	RenewDeadline time.Duration
	// RetryPeriod is the time between two tries to take or to renew the Lease. It is
	// shorter than RenewDeadline divided by 1.2. 0: 2 s.
	RetryPeriod time.Duration
	// OnChange is called when this process begins to lead and when it ends. Nil:
	// nothing is called.
	OnChange func(leads bool)
	// Metrics takes kubevirt_virt_controller_leading_status, while Lead runs. Nil: there
	// is none.
	Metrics prometheus.Registerer
	// Logger takes what client-go logs of the election. Nil: client-go logs to klog.
	Logger *slog.Logger
}

// The durations of a Lease that says none.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// Lead waits until this process leads, runs the function, and returns when ctx
// has ended or the lead is lost. The context of the function ends then. The Lease is given
// back only after the function has returned, so that its successor may begin at once. An
// error means that the process should end, or call Lead again with another [Controller].
func Lead(ctx context.Context, l Lease, run func(context.Context) error) error {
	if err := reconcile.Missing("controller.Lease", map[string]bool{
		"Kube": l.Kube == nil, "Namespace": l.Namespace == "", "Name": l.Name == "", "Identity": l.Identity == "",
	}); err != nil {
		return err
	}
	leading := metrics.Leading()
	unregister, err := metrics.Register(l.Metrics, leading)
	if err != nil {
		return err
	}
	defer unregister()
	changed := func(leads bool) {
		leading.Set(map[bool]float64{true: 1}[leads])
		if l.OnChange != nil {
			l.OnChange(leads)
		}
	}
	// The elector must outlive the function, or it would give the Lease back while
	// the function still works.
	elector, stop := context.WithCancel(reconcile.WithClientLog(context.WithoutCancel(ctx), l.Logger))
	defer stop()
	began := make(chan struct{})
	done := make(chan error, 1)
	e, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: l.Namespace, Name: l.Name},
			Client:     l.Kube.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: l.Identity},
		},
		LeaseDuration: cmp.Or(l.Duration, leaseDuration), RenewDeadline: cmp.Or(l.RenewDeadline, renewDeadline), RetryPeriod: cmp.Or(l.RetryPeriod, retryPeriod),
		ReleaseOnCancel: true,
		Name:            l.Name,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(lead context.Context) {
				close(began)
				changed(true)
				defer changed(false)
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
