package controller

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/internal/reconcile"
	"github.com/podvisor/podvisor/vmi"
)

// rendered are the pods whose creation is under way, with the VMIs that they were rendered
// for, by the keys of the pods. The zero value is empty. It is safe for concurrent use.
type rendered struct {
	mu  sync.Mutex
	all map[string]renderedPod
}

type renderedPod struct {
	pod        *corev1.Pod
	owner      types.UID
	generation int64
}

// begin notes the pod until end is called.
func (r *rendered) begin(owner vmi.Object, p *corev1.Pod) (end func()) {
	key := reconcile.Key(p)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[string]renderedPod{}
	}
	r.all[key] = renderedPod{p, owner.GetUID(), owner.GetGeneration()}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.all[key].pod == p {
			delete(r.all, key)
		}
	}
}

func (r *rendered) get(key string) (renderedPod, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, ok := r.all[key]
	return p, ok
}

// Creating returns the pod that the Controller rendered for the VMI of this name and is about
// to create, if the VMI is the one with the UID, is not being deleted, and has the spec that
// the pod was rendered for. Nil: there is none. The pod is shared: copy it before changing it.
func (c *Controller) Creating(namespace, pod, instance string, uid types.UID) *corev1.Pod {
	p, ok := c.rendered.get(reconcile.KeyIn(namespace, pod))
	if !ok || p.owner != uid {
		return nil
	}
	v := c.instances.latest(reconcile.KeyIn(namespace, instance))
	if v == nil || v.UID != uid || v.DeletionTimestamp != nil || v.Generation != p.generation {
		return nil
	}
	return p.pod
}
