package controller

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/podvisor/podvisor/internal/reconcile"
	"github.com/podvisor/podvisor/vmi"
)

// Instance is the VMI with this key (namespace/name), by the cache and own writes. Nil:
// there is none. One that this process deleted is being deleted, also while the cache does
// not say so. Made says that it was created a moment ago and that the cache has not
// had it, and may never have it: a plan that relies on it has a Recheck. The VMI is
// shared: copy it before changing it.
func (c *Controller) Instance(key string) (v *vmi.VirtualMachineInstance, made bool) {
	now := c.cfg.Now()
	if v := c.instances.latest(key); v != nil {
		return deleting(v, &c.deleted, now), false
	}
	v = c.madeInstances.Of(key, now)
	return v, v != nil
}

// seen notes that the cache has a VMI, or has had it, before the keys that follow from
// its change are queued.
func (c *Controller) seen(keys func(*vmi.VirtualMachineInstance) []string) func(*vmi.VirtualMachineInstance) []string {
	return func(v *vmi.VirtualMachineInstance) []string {
		c.madeInstances.Seen(reconcile.Key(v), v.UID)
		return keys(v)
	}
}

// deleting is the object as it is being deleted, if this process deleted it and the cache
// does not say so yet. It closes one race: the object is decided on again before the cache
// has its deletion, whose event would be emitted once more.
func deleting[T vmi.Object](o T, deleted *recent, now time.Time) T {
	at, ok := deleted.Get(o.GetUID(), now)
	if !ok || o.GetDeletionTimestamp() != nil {
		return o
	}
	o = o.DeepCopyObject().(T)
	when := metav1.NewTime(at)
	o.SetDeletionTimestamp(&when)
	return o
}

// Instances are the VMIs of the namespace, by the cache and own writes. One that
// this process deleted is being deleted, also while the cache does not say so. Made
// says that one was created a moment ago and that the cache has not had it, and may
// never have it: a plan that relies on it has a Recheck. The VMIs are shared: copy one
// before changing it.
func (c *Controller) Instances(namespace string) (out []*vmi.VirtualMachineInstance, made bool) {
	now := c.cfg.Now()
	cached, _ := c.caches.instances.Lister().Namespace(namespace).List(labels.Everything()) // it never fails
	for _, v := range cached {
		if v = c.instances.latest(reconcile.Key(v)); v == nil {
			continue
		}
		out = append(out, deleting(v, &c.deleted, now))
	}
	for _, v := range c.madeInstances.In(namespace, now) {
		if c.caches.instances.Lister().Key(reconcile.Key(v)) == nil {
			out, made = append(out, v), true
		}
	}
	return out, made
}
