package controller

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/podvisor/podvisor/internal/reconcile"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/replicaset"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client/informer"
)

// sets are VirtualMachineInstanceReplicaSets. They are queued when a VMI changes that
// they control, or could.
//
// +podvisor:entry
var sets = KindOf[*vmi.VirtualMachineInstanceReplicaSet, *vmi.VirtualMachineInstanceReplicaSetList]{
	Definition: vmi.VirtualMachineInstanceReplicaSets,
	Name:       "virt-controller-replicaset", Observe: observeSet, Meanwhile: true,
	Describe: func(s *vmi.VirtualMachineInstanceReplicaSet) []any {
		return []any{"replicas", s.Status.Replicas, "ready", s.Status.ReadyReplicas}
	},
	Instances: setsOf,
	keep:      func(*Controller) func(*vmi.VirtualMachineInstanceReplicaSet) { return keepSet },
	whole:     wholeSet,
}

// setsOf are the keys of the sets that control the VMI, or else of those whose
// selector matches it.
func setsOf(v *vmi.VirtualMachineInstance, sets informer.Lister[*vmi.VirtualMachineInstanceReplicaSet]) []string {
	if ref := metav1.GetControllerOfNoCopy(v); ref != nil {
		return reconcile.OwnedBy[*vmi.VirtualMachineInstance](vmi.VirtualMachineInstanceReplicaSets.Kind)(v)
	}
	var keys []string
	all, _ := sets.Namespace(v.Namespace).List(labels.Everything()) // it never fails
	for _, s := range all {
		if selector, err := metav1.LabelSelectorAsSelector(s.Spec.Selector); err == nil && selector.Matches(labels.Set(v.Labels)) {
			keys = append(keys, reconcile.Key(s))
		}
	}
	return keys
}

// observeSet reads what a decision about the set depends on. Before a VMI is adopted
// or deleted, the API server says whether the set is still the same: the cache may not
// have that it was deleted or scaled.
func observeSet(ctx context.Context, c *Controller, s *vmi.VirtualMachineInstanceReplicaSet) (Decide[*vmi.VirtualMachineInstanceReplicaSet], error) {
	instances, made := c.Instances(s.Namespace)
	written, _ := c.statusWritten.Get(s.UID, c.cfg.Now())
	o := replicaset.Observed{
		Instances: instances, Unguarded: c.cfg.Guarded != nil && !c.cfg.Guarded(),
		Profile: c.rendering().Cluster.Defaults, StatusWritten: written, Now: c.cfg.Now(),
	}
	next := func(s *vmi.VirtualMachineInstanceReplicaSet, refusal *vmi.Finding) scheduler.Plan {
		now := o
		now.Set, now.Refusal = s, refusal
		return replicaset.Decide(now)
	}
	if takes(next(s, nil)) {
		if err := isCurrent(ctx, vmi.VirtualMachineInstanceReplicaSets.Definition, s, c.cfg.Client.VirtualMachineInstanceReplicaSets(s.Namespace).Get); err != nil {
			return nil, err
		}
	}
	return func(s *vmi.VirtualMachineInstanceReplicaSet, refusal *vmi.Finding) scheduler.Plan {
		p := next(s, refusal)
		if slices.ContainsFunc(p.Actions, is[scheduler.WriteStatus[*vmi.VirtualMachineInstanceReplicaSet]]) {
			c.statusWritten.Put(s.UID, o.Now, o.Now, recentFor)
		}
		if made && (p.Recheck == 0 || p.Recheck > unseen) {
			p.Recheck = unseen // the cache may never have it
		}
		return p
	}, nil
}

// adopts reports whether the plan adopts a VMI.
func adopts(p scheduler.Plan) bool {
	return slices.ContainsFunc(p.Actions, is[scheduler.AdoptInstance])
}

// takes reports whether the plan adopts or deletes a VMI that runs.
func takes(p scheduler.Plan) bool {
	return adopts(p) || slices.ContainsFunc(p.Actions, func(a scheduler.Action) bool {
		d, deletes := a.(scheduler.DeleteInstance)
		return deletes && !d.Instance.Status.Phase.Final()
	})
}
