package controller

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/internal/reconcile"
	"github.com/podvisor/podvisor/internal/scheduler/launched"
	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/vmi"
)

// sharers are the other VMIs with volumes in claims of v, with their pods, also those of
// which only a pod is left. A VMI that is not in the cache yet sees v there, and waits: it is
// younger.
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
	left, err := c.unfenced(ctx, c.caches.bereft(v))
	if err != nil {
		return nil, err
	}
	for _, p := range left {
		out = append(out, instance.Sharer{VMI: mounts(p), Pod: p})
	}
	gone, err := c.unended(ctx, v)
	if err != nil {
		return nil, err
	}
	return append(out, gone...), nil
}

// bereft are the launcher pods with claims of v whose VMIs do not exist, as when one lost
// its finalizer: their guests may run. Those of earlier VMIs of its name it waits for anyway.
func (s *caches) bereft(v *vmi.VirtualMachineInstance) []*corev1.Pod {
	var out []*corev1.Pod
	for _, claim := range reconcile.KeysIn(v.Namespace, instance.ClaimNames(v)...) {
		found, _ := s.pods.GetIndexer().ByIndex(indexMounted, claim)
		for _, o := range found {
			p := o.(*corev1.Pod)
			if launched.InstanceName(p) != v.Name && !launched.Ended(p) && s.isBereft(p) && !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
	}
	return out
}

// isBereft says that the VMI of the launcher pod does not exist.
func (s *caches) isBereft(p *corev1.Pod) bool {
	all, _ := s.instances.GetIndexer().ByIndex(IndexUID, string(launched.Creator(p)))
	return len(all) == 0
}

// mounts is what is known of a VMI of which only a pod is left: its volumes in claims, which
// may be disks.
func mounts(p *corev1.Pod) *vmi.VirtualMachineInstance {
	v := &vmi.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: launched.InstanceName(p)}}
	for _, volume := range p.Spec.Volumes {
		if c := volume.PersistentVolumeClaim; c != nil {
			v.Spec.Volumes = append(v.Spec.Volumes, vmi.Volume{Name: volume.Name, VolumeSource: vmi.VolumeSource{
				PersistentVolumeClaim: &vmi.PersistentVolumeClaimVolume{PersistentVolumeClaimVolumeSource: *c},
			}})
		}
	}
	return v
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
		if mayWait(other) {
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
	if len(all) > 0 {
		return keys
	}
	for _, claim := range mounted(p) {
		found, _ := c.caches.instances.GetIndexer().ByIndex(IndexClaim, claim)
		for _, o := range found {
			if v := o.(*vmi.VirtualMachineInstance); mayWait(v) {
				keys = append(keys, reconcile.Key(v))
			}
		}
	}
	return keys
}

// mayWait says that the VMI may wait for another one to end.
func mayWait(v *vmi.VirtualMachineInstance) bool {
	return v.Status.Phase == vmi.PhaseUnset || v.Status.Phase == vmi.PhasePending
}
