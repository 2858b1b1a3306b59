package main

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/podvisor/podvisor/vmi"
)

// running is the program's own reconciler, made as any with controller-runtime: it counts
// the VMIs of each phase.
type running struct {
	ctrlclient.Reader
	phases *prometheus.GaugeVec
}

// addRunning adds the reconciler to the manager and its metric to reg.
func addRunning(mgr ctrl.Manager, reg prometheus.Registerer) error {
	r := running{mgr.GetCache(), prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "example_vmis", Help: "VMIs by phase.",
	}, []string{"phase"})}
	if err := reg.Register(r.phases); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).Named("phases").For(&vmi.VirtualMachineInstance{}).Complete(r)
}

// Reconcile implements reconcile.Reconciler.
func (r running) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	var all vmi.VirtualMachineInstanceList
	if err := r.List(ctx, &all); err != nil {
		return reconcile.Result{}, err
	}
	count := map[vmi.Phase]float64{}
	for _, v := range all.Items {
		count[v.Status.Phase]++
	}
	r.phases.Reset()
	for phase, n := range count {
		r.phases.WithLabelValues(string(phase)).Set(n)
	}
	return reconcile.Result{}, nil
}
