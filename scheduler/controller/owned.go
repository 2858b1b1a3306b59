package controller

import (
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

// instancesIn are the VMIs of the namespace, by the cache and own writes.
func (c *Controller) instancesIn(namespace string) []*vmi.VirtualMachineInstance {
	out := c.madeInstances.In(namespace, c.cfg.Now())
	for _, v := range c.caches.instances.Select(namespace, labels.Everything()) {
		if v = c.instances.latest(reconcile.Key(v)); v != nil {
			out = append(out, v)
		}
	}
	return out
}
