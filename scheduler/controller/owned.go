package controller

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/podvisor/podvisor/internal/reconcile"
	"github.com/podvisor/podvisor/vmi"
)

// instanceOf is the VMI with this key, by the cache and own writes. Nil: there is none.
func (c *Controller) instanceOf(key string) *vmi.VirtualMachineInstance {
	if v := c.instances.latest(key); v != nil {
		return v
	}
	return c.madeInstances.Of(key, c.cfg.Now())
}

// instancesIn are the VMIs of the namespace, by the cache and own writes. One that
// this process deleted is being deleted, also while the cache does not say so.
func (c *Controller) instancesIn(namespace string) []*vmi.VirtualMachineInstance {
	var out []*vmi.VirtualMachineInstance
	now := c.cfg.Now()
	for _, v := range c.caches.instances.Select(namespace, labels.Everything()) {
		if v = c.instances.latest(reconcile.Key(v)); v == nil {
			continue
		}
		if v.DeletionTimestamp == nil && c.deletedInstances.Has(v.UID) {
			v = v.DeepCopy()
			v.DeletionTimestamp = new(metav1.NewTime(now))
		}
		out = append(out, v)
	}
	for _, v := range c.madeInstances.In(namespace, now) {
		if c.caches.instances.Key(reconcile.Key(v)) == nil {
			out = append(out, v)
		}
	}
	return out
}
