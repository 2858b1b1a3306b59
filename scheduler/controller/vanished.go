package controller

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/internal/reconcile"
	"github.com/podvisor/podvisor/internal/scheduler/launched"
	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/vmi"
)

// vanished is a pod that was removed while its launcher ran, and when.
type vanished struct {
	pod *corev1.Pod
	at  time.Time
}

// Limits of what is known of pods that were removed.
const (
	mostVanished = 4096
	vanishedFor  = 24 * time.Hour
	// endedFor is how long after its VMI a pod may be removed.
	endedFor = time.Hour
)

// noteVanished notes a pod that was removed while its launcher ran, as by force. Its kubelet
// gives the guest its time. As long as there is its VMI, that waits for the node; if the VMI
// loses its finalizer and is gone too, nothing but this is known of the guest.
func (c *Controller) noteVanished(p *corev1.Pod) {
	s := launched.Compute(p)
	if s == nil || s.State.Running == nil || launched.Ended(p) || len(mounted(p)) == 0 || c.caches.pods.Lister().Key(reconcile.Key(p)) != nil {
		return
	}
	if _, ended := c.ended.Get(p.UID, c.cfg.Now()); ended {
		return
	}
	c.vanished.Put(p.UID, vanished{p, c.cfg.Now()}, c.cfg.Now(), vanishedFor)
	for _, key := range madeFor(p) {
		if v := c.caches.instances.Lister().Key(key); v != nil {
			c.forgetVanished(v)
		}
	}
}

// forgetVanished drops the pods of a VMI whose guest is known to have ended, also those that
// are removed after it.
func (c *Controller) forgetVanished(v *vmi.VirtualMachineInstance) {
	if v.Status.Phase.Final() && !v.Status.Uncertain() {
		for uid := range v.Status.ActivePods {
			c.ended.Put(uid, struct{}{}, c.cfg.Now(), endedFor)
			c.vanished.Delete(uid)
		}
	}
}

// unended are the pods with claims of v that were removed and whose VMIs do not exist any
// more.
func (c *Controller) unended(ctx context.Context, v *vmi.VirtualMachineInstance) ([]instance.Sharer, error) {
	claims := reconcile.KeysIn(v.Namespace, instance.ClaimNames(v)...)
	if len(claims) == 0 || c.vanished.Len() == 0 {
		return nil, nil
	}
	var out []instance.Sharer
	for _, gone := range c.vanished.All(c.cfg.Now()) {
		p := gone.pod
		if launched.Creator(p) == v.UID || !slices.ContainsFunc(mounted(p), func(key string) bool { return slices.Contains(claims, key) }) || !c.caches.isBereft(p) {
			continue
		}
		n, err := c.node(ctx, p.Spec.NodeName)
		if err != nil {
			return nil, err
		}
		out = append(out, instance.Sharer{VMI: mounts(p), Pod: p, Removed: gone.at, Node: n})
	}
	slices.SortFunc(out, func(a, b instance.Sharer) int { return strings.Compare(a.Pod.Name, b.Pod.Name) })
	return out, nil
}
