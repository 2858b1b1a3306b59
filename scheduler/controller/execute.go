package controller

import (
	"context"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/podvisor/podvisor/internal/reconcile"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
)

// Executor is what [Execute] carries plans out with. In a test, Client is one of the API
// server of vmi/client/fake, and Kube client-go's fake clientset: the plan's effect is
// what is in them then.
type Executor struct {
	// Client writes the kinds of package vmi. Required.
	Client *client.Client
	// Kube writes pods, claims, revisions and events. Required.
	Kube kubernetes.Interface
	// Dynamic creates DataVolumes. Nil: a plan that creates one does not succeed.
	Dynamic dynamic.Interface
	// Component is what events say that they come from. Empty: virtualmachine-controller,
	// as in KubeVirt.
	Component string
	// Logger takes a line for each action. Nil: nothing is logged.
	Logger *slog.Logger
	// Now is the clock. Nil: time.Now.
	Now func() time.Time
}

// Execute carries out the plan that was made for the object o of the kind: the actions in
// their order, until one does not succeed. It returns the object as it is stored after
// them, also with an error. It is for whoever has a loop of their own around Decide of
// scheduler/instance, scheduler/vm, scheduler/replicaset or scheduler/pool, and may be called for several
// objects at the same time.
//
// An error that wraps a [*Refusal] says that the API server refused a pod, a claim, a VMI
// or a DataVolume as it is: decide again with its Finding as Observed.Refusal, execute
// that plan, and try again later. A conflict says that o was old. After any error observe
// again: a plan is not repeated. Plan.Recheck is for the caller.
func Execute[T vmi.Object, L runtime.Object](ctx context.Context, e Executor, kind vmi.DefinitionOf[T, L], o T, p scheduler.Plan) (T, error) {
	x, err := newExecutor(e, kind)
	if err != nil {
		return o, err
	}
	return x.act(ctx, o, p)
}

// newExecutor makes an executor that shares nothing with others.
func newExecutor[T vmi.Object, L runtime.Object](e Executor, kind vmi.DefinitionOf[T, L]) (*executor[T, L], error) {
	if err := reconcile.Missing("controller.Executor", map[string]bool{"Client": e.Client == nil, "Kube": e.Kube == nil}); err != nil {
		return nil, err
	}
	if e.Logger == nil {
		e.Logger = slog.New(slog.DiscardHandler)
	}
	if e.Now == nil {
		e.Now = time.Now
	}
	if e.Component == "" {
		e.Component = component
	}
	events, err := reconcile.NewEvents(reconcile.EventsConfig{Client: e.Kube.CoreV1(), Component: e.Component, Logger: e.Logger, Now: e.Now})
	if err != nil {
		return nil, err
	}
	deleted := &recent{}
	return &executor[T, L]{
		kube: e.Kube, events: events, client: e.Client, writer: reconcile.NewWriter(e.Client, kind), log: e.Logger,
		made: &made{}, rendered: &rendered{}, gates: &gates{}, deleted: deleted, now: e.Now, describe: func(T) []any { return nil }, kind: kind,
		owned: &owned{
			client: e.Client, writer: reconcile.NewWriter(e.Client, vmi.VirtualMachineInstances), deleted: deleted, now: e.Now,
			made: &reconcile.Made[*vmi.VirtualMachineInstance]{}, cached: func(string) *vmi.VirtualMachineInstance { return nil },
		},
		pooled: &pooled{
			client: e.Client, writer: reconcile.NewWriter(e.Client, vmi.VirtualMachines), deleted: deleted, now: e.Now,
			made: &reconcile.Made[*vmi.VirtualMachine]{}, cached: func(string) *vmi.VirtualMachine { return nil },
		},
		dataVolumes: &dataVolumes{client: e.Dynamic},
	}, nil
}
