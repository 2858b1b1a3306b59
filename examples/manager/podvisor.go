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

// podvisor is what the manager runs of Podvisor.
type podvisor struct {
	loops    *controller.Controller
	settings *live.Watcher
}

// add adds Podvisor's controllers and the program's own reconciler to the manager. All
// metrics are in reg, and all logs are the manager's.
func add(mgr ctrl.Manager, c clients, launcher pod.Launcher, namespace string, guarded func() bool, reg prometheus.Registerer) (p podvisor, err error) {
	log := slog.New(logr.ToSlogHandler(mgr.GetLogger().WithName("podvisor")))
	if p.settings, err = live.New(live.Config{KubeVirts: c.vmis.KubeVirts(""), Metrics: reg, Logger: log}); err != nil {
		return p, err
	}
	p.loops, err = controller.New(controller.Config{
		Client: c.vmis, Kube: c.kube, Dynamic: c.dynamic,
		Launcher: launcher,
		Settings: p.settings, Home: namespace, Guarded: guarded,
		Metrics: reg, Logger: log,
	})
	if err != nil {
		return p, err
	}
	return p, errors.Join(
		mgr.Add(everywhere(p.settings.Run)),
		// A RunnableFunc runs while this process leads. It is run once: a manager that has
		// lost the lead returns from Start, and the program ends.
		mgr.Add(manager.RunnableFunc(p.loops.Run)),
		mgr.AddReadyzCheck("podvisor", func(*http.Request) error { return p.loops.Ready() }),
		addRunning(mgr, reg),
	)
}

// everywhere is a Runnable that runs in every replica, leading or not.
type everywhere func(context.Context) error

// Start implements manager.Runnable.
func (e everywhere) Start(ctx context.Context) error { return e(ctx) }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (e everywhere) NeedLeaderElection() bool { return false }
