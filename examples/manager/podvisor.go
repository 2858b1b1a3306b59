package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/podvisor/podvisor/scheduler/controller"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/config/live"
)

// clients are what Podvisor's controllers reach the API server with.
type clients struct {
	vmis    *client.Client
	kube    kubernetes.Interface
	dynamic dynamic.Interface
}

// add adds Podvisor's controllers and the program's own reconciler to the manager. All
// metrics are in reg, and all logs are the manager's.
func add(mgr ctrl.Manager, c clients, o options, reg prometheus.Registerer) error {
	log := slog.New(logr.ToSlogHandler(mgr.GetLogger().WithName("podvisor")))
	settings, err := live.New(live.Config{KubeVirts: c.vmis.KubeVirts(""), Metrics: reg, Logger: log})
	if err != nil {
		return err
	}
	loops, err := controller.New(controller.Config{
		Client: c.vmis, Kube: c.kube, Dynamic: c.dynamic,
		Launcher: pod.Launcher{Image: o.image},
		Settings: settings, Home: o.namespace,
		Metrics: reg, Logger: log,
	})
	if err != nil {
		return err
	}
	return errors.Join(
		mgr.Add(everywhere(settings.Run)),
		// A RunnableFunc runs while this process leads. It is run once: a manager that has
		// lost the lead returns from Start, and the program ends.
		mgr.Add(manager.RunnableFunc(loops.Run)),
		mgr.AddReadyzCheck("podvisor", func(*http.Request) error { return loops.Ready() }),
		addRunning(mgr, reg),
	)
}

// everywhere is a Runnable that runs in every replica, leading or not.
type everywhere func(context.Context) error

// Start implements manager.Runnable.
func (e everywhere) Start(ctx context.Context) error { return e(ctx) }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (e everywhere) NeedLeaderElection() bool { return false }
