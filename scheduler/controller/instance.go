package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/internal/reconcile"
	"github.com/podvisor/podvisor/internal/scheduler/launched"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/vmi"
)

// addInstances adds the loop of VirtualMachineInstances, before all others: these watch
// and write VMIs through it. They are queued when their pod, its node, the virt-handler
// there or a claim changes.
func (c *Controller) addInstances() error {
	var err error
	c.instances, err = newLoop(c, KindOf[*vmi.VirtualMachineInstance, *vmi.VirtualMachineInstanceList]{
		Definition: vmi.VirtualMachineInstances,
		Name:       "virt-controller-vmi", Observe: observeInstance,
		Describe: describeInstance, Indexers: InstanceIndexers(), keep: (*Controller).keepOfInstance,
		wholeStatus: wholeInstance,
	})
	if err != nil {
		return err
	}
	c.caches.instances = c.instances.cached
	c.owned = &owned{client: c.cfg.Client, writer: c.instances.writer, made: &c.madeInstances, deleted: &c.deleted, cached: c.caches.instances.Lister().Key, now: c.cfg.Now}
	l := c.instances.loop
	err = errors.Join(
		reconcile.Watch(c.caches.pods, l, func(p *corev1.Pod) []string {
			c.noteLast(p)
			c.noteVanished(p)
			if c.caches.pods.Lister().Key(reconcile.Key(p)) == nil {
				c.silences.Delete(p.UID)
			}
			return slices.Concat(madeFor(p), c.besidePod(p))
		}, podChanged),
		reconcile.Watch(c.caches.claims, l, c.caches.instancesWith, nil),
		reconcile.Watch(c.caches.instances, l, func(v *vmi.VirtualMachineInstance) []string {
			return slices.Concat(c.caches.instancesBeside(v), c.caches.instancesNear(v))
		}, progressed),
		reconcile.Watch(c.caches.nodes, l, func(n *corev1.Node) []string {
			if c.caches.nodes.Lister().Key(n.Name) == nil {
				c.downtimes.Delete(n.Name)
			}
			return c.caches.instancesOn(n.Name)
		}, nodeChanged))
	if c.cfg.Home != "" {
		err = errors.Join(err, reconcile.Watch(c.caches.handlers, l, func(p *corev1.Pod) []string {
			c.handler(p.Spec.NodeName)
			return c.caches.instancesOn(p.Spec.NodeName)
		}, podChanged))
	}
	return err
}

// keepOfInstance drops what is not read of a VMI. What kinds of an embedder read of VMIs is
// not known: then they are kept whole.
func (c *Controller) keepOfInstance() func(*vmi.VirtualMachineInstance) {
	if len(c.cfg.Kinds) > 0 {
		return nil
	}
	return c.keeper.instance
}

// describeInstance is the phase of a VMI, and why it has ended or is not ready.
func describeInstance(v *vmi.VirtualMachineInstance) []any {
	s := &v.Status
	return []any{"phase", s.Phase, "node", s.NodeName, "reason", s.Reason}
}

// observeInstance reads what a decision about the VMI depends on. What is missing
// in a cache, and matters, is read from the API server.
func observeInstance(ctx context.Context, c *Controller, v *vmi.VirtualMachineInstance) (Decide[*vmi.VirtualMachineInstance], error) {
	o := instance.Observed{Config: c.rendering(), Unguarded: c.cfg.Guarded != nil && !c.cfg.Guarded(), Now: c.cfg.Now()}
	c.forgetVanished(v)
	var err error
	if o.Pods, o.Former, err = c.podsOf(ctx, v); err != nil {
		return nil, err
	}
	if o.Pods.Active != nil {
		o.Pods.Active = deleting(c.gates.latest(o.Pods.Active, o.Now), &c.deleted, o.Now)
	}
	for _, others := range [][]*corev1.Pod{o.Pods.Stray, o.Pods.Targets} {
		for i, p := range others {
			others[i] = c.gates.latest(p, o.Now)
		}
	}
	if o.Node, err = c.node(ctx, o.Pods.NodeName(v)); err != nil {
		return nil, err
	}
	if o.Claims, err = c.claimsOf(ctx, v, o.Pods); err != nil {
		return nil, err
	}
	if o.State, err = c.stateClaims(ctx, v, o.Pods); err != nil {
		return nil, err
	}
	if o.Pods.Active == nil {
		if o.Sharers, err = c.sharers(ctx, v); err != nil {
			return nil, err
		}
		if o.Definitions, err = c.definitions(ctx, v); err != nil {
			return nil, err
		}
	}
	if o.Pods.Active != nil {
		o.Neighbours = c.caches.neighbours(v)
	}
	if o.Pods.Active == nil && v.Status.Phase.Final() {
		o.Pods.Removed = c.removedPod(v)
	}
	o.Silence = c.silence(ctx, v, o.Pods.Active)
	return func(v *vmi.VirtualMachineInstance, refusal *vmi.Finding) scheduler.Plan {
		now := o
		now.VMI, now.Refusal = v, refusal
		return c.evacuate(v, o, instance.Decide(now))
	}, nil
}

// podsOf are the pods of the VMI, and those of earlier VMIs of its name. That the
// active one is missing in the cache is harmless where the answer is to create it,
// because a pod cannot be created twice. Everywhere else the API server decides.
func (c *Controller) podsOf(ctx context.Context, v *vmi.VirtualMachineInstance) (instance.Pods, []*corev1.Pod, error) {
	name := instance.ActivePodName(v)
	named, err := c.named(ctx, v)
	if err != nil {
		return instance.Pods{}, nil, err
	}
	all := slices.DeleteFunc(slices.Clone(named), func(p *corev1.Pod) bool { return !launched.MadeFor(p, v) && p.Name != name })
	r := instance.PodsByRole(v, all)
	fresh := v.DeletionTimestamp == nil && (v.Status.Phase == vmi.PhaseUnset || v.Status.Phase == vmi.PhasePending)
	switch {
	case fresh && r.Active == nil:
		former, err := c.unfenced(ctx, launched.Former(v, named))
		return r, former, err
	case r.Active != nil || v.Status.Phase == vmi.PhaseSucceeded || v.Status.Phase.Final() && v.DeletionTimestamp == nil && !v.Status.Uncertain():
		return r, nil, nil
	case v.DeletionTimestamp != nil && !slices.Contains(v.Finalizers, vmi.Finalizer):
		return r, nil, nil // nothing is done with it any more
	}
	live, err := read(ctx, "pod", name, c.cfg.Kube.CoreV1().Pods(v.Namespace).Get)
	if err != nil {
		return instance.PodsByRole(v, without(all, name)), nil, err
	}
	if live == nil {
		r = instance.PodsByRole(v, without(all, name))
		if r.Active == nil {
			r.Active = c.endedPod(v)
		}
		return r, nil, nil
	}
	return instance.PodsByRole(v, append(without(all, live.Name), live)), nil, nil
}

// lastFor is how long the last state of a pod is kept that is gone.
const lastFor = time.Minute

// noteLast keeps the last state of a pod that is gone and that its VMI runs in, or ran in
// when the pod was removed by force. The kubelet deletes a pod as soon as it has reported its
// end, so that both may be observed as one: without it the end would be virt-handler's to
// report, which may be away. And virt-handler may report the end of a guest before it can
// know that the pod was removed, which it then takes for an eviction.
func (c *Controller) noteLast(p *corev1.Pod) {
	if c.caches.pods.Lister().Key(reconcile.Key(p)) != nil {
		return
	}
	now := c.cfg.Now()
	for _, key := range madeFor(p) {
		v := c.caches.instances.Lister().Key(key)
		if v == nil || v.Status.ActivePods[p.UID] == "" || launched.Ended(p) && v.Status.Phase.Final() {
			continue
		}
		if !launched.Ended(p) && p.DeletionTimestamp == nil {
			p = p.DeepCopy()
			p.DeletionTimestamp = &metav1.Time{} // it was deleted, and no clock that is known says when
		}
		c.last.Put(p.UID, p, now, lastFor)
	}
}

// endedPod is the last state of the pod that the VMI ran in, if it is known to have ended.
func (c *Controller) endedPod(v *vmi.VirtualMachineInstance) *corev1.Pod {
	if p := c.lastPod(v); p != nil && launched.Ended(p) {
		return p
	}
	return nil
}

// removedPod is the last state of the pod that the VMI ran in, if it is known to have been
// removed before it ended.
func (c *Controller) removedPod(v *vmi.VirtualMachineInstance) *corev1.Pod {
	if p := c.lastPod(v); p != nil && !launched.Ended(p) {
		return p
	}
	return nil
}

// lastPod is the last state of the pod that the VMI ran in and that is gone. Nil: it is not
// known.
func (c *Controller) lastPod(v *vmi.VirtualMachineInstance) *corev1.Pod {
	for uid, node := range v.Status.ActivePods {
		if p, ok := c.last.Get(uid, c.cfg.Now()); ok && node == v.Status.NodeName {
			return p
		}
	}
	return nil
}

// named are the pods that were made for VMIs of this name, and the one with the
// name of the VMI's pod.
func (c *Controller) named(ctx context.Context, v *vmi.VirtualMachineInstance) ([]*corev1.Pod, error) {
	key, name := reconcile.Key(v), instance.ActivePodName(v)
	found, err := c.caches.pods.GetIndexer().ByIndex(indexInstance, key)
	if err != nil {
		return nil, err
	}
	var all []*corev1.Pod
	for _, o := range found {
		if p := o.(*corev1.Pod); p.Name != name {
			all = append(all, p)
		}
	}
	if p := c.caches.pods.Lister().Key(reconcile.KeyIn(v.Namespace, name)); p != nil {
		all = append(all, p)
	}
	last, _ := c.made.Get(key, c.cfg.Now())
	if last == "" || last == name || c.caches.pods.Lister().Key(reconcile.KeyIn(v.Namespace, last)) != nil {
		return all, nil
	}
	live, err := read(ctx, "pod", last, c.cfg.Kube.CoreV1().Pods(v.Namespace).Get)
	switch {
	case live != nil:
		all = append(all, live)
	case err == nil:
		c.made.seen(key, last)
	}
	return all, err
}

// unfenced are the pods whose node may run them.
func (c *Controller) unfenced(ctx context.Context, pods []*corev1.Pod) ([]*corev1.Pod, error) {
	var out []*corev1.Pod
	for _, p := range pods {
		n, err := c.node(ctx, p.Spec.NodeName)
		if err != nil {
			return nil, err
		}
		if !n.Fenced() {
			out = append(out, p)
		}
	}
	return out, nil
}

// without are the pods but the one with this name.
func without(pods []*corev1.Pod, name string) []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range pods {
		if p.Name != name {
			out = append(out, p)
		}
	}
	return out
}

// node is the node of this name, and the virt-handler on it.
func (c *Controller) node(ctx context.Context, name string) (instance.Node, error) {
	n := instance.Node{Name: name}
	if name == "" {
		return n, nil
	}
	if n.Object = c.caches.nodes.Lister().Key(name); n.Object == nil {
		var err error
		if n.Object, err = read(ctx, "node", name, c.cfg.Kube.CoreV1().Nodes().Get); err != nil {
			return n, err
		}
	}
	n.Handler, n.HandlerDown = c.handler(name)
	return n, nil
}

// handler is the pod of virt-handler on the node, and since when none has been
// ready there.
func (c *Controller) handler(node string) (*corev1.Pod, time.Time) {
	if c.cfg.Home == "" {
		return nil, time.Time{}
	}
	p := c.caches.handlerOn(node)
	if p == nil && c.caches.nodes.Lister().Key(node) == nil {
		c.downtimes.Delete(node)
		return nil, time.Time{}
	}
	if p != nil && isReady(p) {
		c.downtimes.Delete(node)
		return p, time.Time{}
	}
	now := c.cfg.Now()
	return p, c.downtimes.GetOrPut(node, now, now, 0)
}

// claimsOf are the claims of the VMI's volumes. Before there is a pod the API
// server decides whether one exists: the pod is rendered by it. Once a pod runs its
// claims are bound, and their sizes go into the VMI with the hand-over.
func (c *Controller) claimsOf(ctx context.Context, v *vmi.VirtualMachineInstance, p instance.Pods) (map[string]*corev1.PersistentVolumeClaim, error) {
	names := instance.ClaimNames(v)
	if len(names) == 0 {
		return nil, nil
	}
	claims := map[string]*corev1.PersistentVolumeClaim{}
	for _, n := range names {
		found := c.caches.claims.Lister().Key(reconcile.KeyIn(v.Namespace, n))
		if found == nil && p.Active == nil && !v.Status.Phase.Final() || v.Status.Phase == vmi.PhaseScheduling && !bound(found) && isRunning(p.Active) {
			var err error
			if found, err = read(ctx, "claim", n, c.cfg.Kube.CoreV1().PersistentVolumeClaims(v.Namespace).Get); err != nil {
				return nil, err
			}
		}
		claims[n] = found
	}
	return claims, nil
}

func bound(c *corev1.PersistentVolumeClaim) bool {
	return c != nil && c.Status.Phase == corev1.ClaimBound
}

func isRunning(p *corev1.Pod) bool { return p != nil && p.Status.Phase == corev1.PodRunning }

// read reads an object from the API server. Nil: it does not exist, as none does with a
// name that cannot be in a URL, which the client refuses each time.
func read[T any](ctx context.Context, what, name string, get func(context.Context, string, metav1.GetOptions) (*T, error)) (*T, error) {
	if name == "" || len(content.IsPathSegmentName(name)) > 0 {
		return nil, nil
	}
	o, err := get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read %s %s: %w", what, name, err)
	}
	return o, nil
}
