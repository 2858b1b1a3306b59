package controller

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/internal/reconcile"
	"github.com/podvisor/podvisor/internal/scheduler/launched"
	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/vmi"
)

// sharers are the other VMIs with volumes in claims of v, with their pods. A VMI that
// is not in the cache yet sees v there, and waits: it is younger.
func (c *Controller) sharers(ctx context.Context, v *vmi.VirtualMachineInstance) ([]instance.Sharer, error) {
	var out []instance.Sharer
	for _, other := range c.caches.beside(v) {
		found, err := c.caches.pods.GetIndexer().ByIndex(indexCreator, string(other.UID))
		if err != nil {
			return nil, err
		}
		var alive []*corev1.Pod
		for _, o := range found {
			if p := o.(*corev1.Pod); p.Namespace == other.Namespace && !launched.Ended(p) {
				alive = append(alive, p)
			}
		}
		if alive, err = c.unfenced(ctx, alive); err != nil {
			return nil, err
		}
		s := instance.Sharer{VMI: other}
		if len(alive) > 0 {
			s.Pod = alive[0]
		}
		out = append(out, s)
	}
	return out, nil
}

// beside are the other VMIs with volumes in claims of v, each once.
func (s *caches) beside(v *vmi.VirtualMachineInstance) []*vmi.VirtualMachineInstance {
	var out []*vmi.VirtualMachineInstance
	for _, claim := range reconcile.KeysIn(v.Namespace, instance.ClaimNames(v)...) {
		found, _ := s.instances.GetIndexer().ByIndex(IndexClaim, claim)
		for _, o := range found {
			if other := o.(*vmi.VirtualMachineInstance); other.Name != v.Name && !slices.Contains(out, other) {
				out = append(out, other)
			}
		}
	}
	return out
}

// instancesBeside are the keys of the VMIs that may wait for v to end.
func (s *caches) instancesBeside(v *vmi.VirtualMachineInstance) []string {
	var keys []string
	for _, other := range s.beside(v) {
		if p := other.Status.Phase; p == vmi.PhaseUnset || p == vmi.PhasePending {
			keys = append(keys, reconcile.Key(other))
		}
	}
	return keys
}

// progressed says that a VMI has another phase, or is stuck for another reason.
func progressed(old, now *vmi.VirtualMachineInstance) bool {
	return old.Status.Phase != now.Status.Phase || stuck(old) != stuck(now) || (old.DeletionTimestamp == nil) != (now.DeletionTimestamp == nil)
}

func stuck(v *vmi.VirtualMachineInstance) string {
	if c := v.Status.Condition(vmi.ConditionSynchronized); c != nil && c.Status == corev1.ConditionFalse {
		return c.Reason
	}
	return ""
}

// besidePod are the keys of the VMIs that may wait for the pod to end.
func (c *Controller) besidePod(p *corev1.Pod) []string {
	all, _ := c.caches.instances.GetIndexer().ByIndex(IndexUID, string(launched.Creator(p)))
	var keys []string
	for _, o := range all {
		keys = append(keys, c.caches.instancesBeside(o.(*vmi.VirtualMachineInstance))...)
	}
	return keys
}
