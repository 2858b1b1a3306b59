package controller

import (
	"context"
	"errors"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/internal/reconcile"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/replicaset"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
)

// registerSets makes VirtualMachineInstanceReplicaSets one of the kinds. They are
// queued when a VMI changes that they control, or could.
func (c *Controller) registerSets() error {
	k, err := register(c, registration[*vmi.VirtualMachineInstanceReplicaSet, *vmi.VirtualMachineInstanceReplicaSetList]{
		definition: vmi.VirtualMachineInstanceReplicaSets, finalizer: vmi.Finalizer,
		name: "virt-controller-replicaset", cached: c.caches.sets,
		in: func(ns string) client.Objects[*vmi.VirtualMachineInstanceReplicaSet, *vmi.VirtualMachineInstanceReplicaSetList] {
			return c.cfg.Client.VirtualMachineInstanceReplicaSets(ns)
		},
		observe: c.observeSet,
		describe: func(s *vmi.VirtualMachineInstanceReplicaSet) []any {
			return []any{"replicas", s.Status.Replicas, "ready", s.Status.ReadyReplicas}
		},
	})
	k.owned = c.owned
	return errors.Join(err, reconcile.Watch(c.caches.instances, k.loop, c.seen(c.setsOf), nil))
}

// setsOf are the keys of the sets that control the VMI, or else of those whose
// selector matches it.
func (c *Controller) setsOf(v *vmi.VirtualMachineInstance) []string {
	if ref := metav1.GetControllerOfNoCopy(v); ref != nil {
		return reconcile.OwnedBy[*vmi.VirtualMachineInstance](vmi.VirtualMachineInstanceReplicaSets.Kind)(v)
	}
	var keys []string
	for _, s := range c.caches.sets.Select(v.Namespace, labels.Everything()) {
		if selector, err := metav1.LabelSelectorAsSelector(s.Spec.Selector); err == nil && selector.Matches(labels.Set(v.Labels)) {
			keys = append(keys, reconcile.Key(s))
		}
	}
	return keys
}

// observeSet reads what a decision about the set depends on.
func (c *Controller) observeSet(_ context.Context, s *vmi.VirtualMachineInstanceReplicaSet) (decide[*vmi.VirtualMachineInstanceReplicaSet], error) {
	o := replicaset.Observed{
		Instances: c.instancesIn(s.Namespace), Unguarded: c.cfg.Guarded != nil && !c.cfg.Guarded(),
		Written: c.written.of(s.UID), Now: c.cfg.Now(),
	}
	return func(s *vmi.VirtualMachineInstanceReplicaSet, refusal *vmi.Finding) scheduler.Plan {
		now := o
		now.Set, now.Refusal = s, refusal
		p := replicaset.Decide(now)
		for _, a := range p.Actions {
			if _, ok := a.(scheduler.WriteStatus[*vmi.VirtualMachineInstanceReplicaSet]); ok {
				c.written.note(s.UID, now.Now)
			}
		}
		return p
	}, nil
}

// written are when statuses were written last, by the UID of their object. What is
// older than a minute is dropped. The zero value is empty.
type written struct {
	mu sync.Mutex
	at map[types.UID]time.Time
}

func (w *written) note(uid types.UID, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.at == nil {
		w.at = map[types.UID]time.Time{}
	}
	for other, at := range w.at {
		if now.Sub(at) > time.Minute {
			delete(w.at, other)
		}
	}
	w.at[uid] = now
}

func (w *written) of(uid types.UID) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at[uid]
}
