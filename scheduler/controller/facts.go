package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/podvisor/podvisor/internal/reconcile"
	"github.com/podvisor/podvisor/internal/scheduler/launched"
	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
)

// Facts reads from the API server what the pod of the VMI is rendered by besides the
// configuration. Without d no definitions of networks are read.
func Facts(ctx context.Context, kube kubernetes.Interface, d dynamic.Interface, v *vmi.VirtualMachineInstance) (pod.Facts, error) {
	f := pod.Facts{Claims: map[string]*corev1.PersistentVolumeClaim{}}
	var err error
	for _, n := range instance.ClaimNames(v) {
		if f.Claims[n], err = read(ctx, "claim", n, kube.CoreV1().PersistentVolumeClaims(v.Namespace).Get); err != nil {
			return f, err
		}
	}
	if f.State, err = startState(ctx, kube, v); err != nil {
		return f, err
	}
	if d != nil {
		f.Networks, err = readDefinitions(ctx, d, v)
	}
	return f, err
}

// startState is the claim for the state of the VMI that a start uses, as the API server has it.
// Nil: there is none.
func startState(ctx context.Context, kube kubernetes.Interface, v *vmi.VirtualMachineInstance) (*corev1.PersistentVolumeClaim, error) {
	all, err := liveState(ctx, kube, v)
	return launched.State(pod.StateClaim(v, pod.Config{}), all), err
}

// stateLabel is the value of the label of the claims for the state of the VMI.
func stateLabel(v *vmi.VirtualMachineInstance) string {
	return pod.StateClaim(v, pod.Config{}).Labels[vmi.StateLabel]
}

// liveState are the claims for the state of VMIs of the name of v, as the API server has them.
func liveState(ctx context.Context, kube kubernetes.Interface, v *vmi.VirtualMachineInstance) ([]*corev1.PersistentVolumeClaim, error) {
	if !v.Spec.Domain.KeepsState() {
		return nil, nil
	}
	list, err := kube.CoreV1().PersistentVolumeClaims(v.Namespace).List(ctx, metav1.ListOptions{LabelSelector: vmi.StateLabel + "=" + stateLabel(v)})
	if err != nil {
		return nil, fmt.Errorf("list the claims for the state of VMI %s: %w", reconcile.Key(v), err)
	}
	var out []*corev1.PersistentVolumeClaim
	for i := range list.Items {
		out = append(out, &list.Items[i])
	}
	return out, nil
}

// stateClaims are the claims for the state of VMIs of the name of v, and the one that its
// migration moves it to. Before there is a pod the API server says which there are.
func (c *Controller) stateClaims(ctx context.Context, v *vmi.VirtualMachineInstance, p instance.Pods) ([]*corev1.PersistentVolumeClaim, error) {
	if p.Active == nil && !v.Status.Phase.Final() && v.DeletionTimestamp == nil {
		return liveState(ctx, c.cfg.Kube, v)
	}
	return c.cachedState(v), nil
}

// cachedState are the same by the cache, and by what was written since.
func (c *Controller) cachedState(v *vmi.VirtualMachineInstance) []*corev1.PersistentVolumeClaim {
	if !v.Spec.Domain.KeepsState() {
		return nil
	}
	found, _ := c.caches.claims.GetIndexer().ByIndex(indexState, reconcile.KeyIn(v.Namespace, stateLabel(v))) // the index exists
	var out []*corev1.PersistentVolumeClaim
	for _, o := range found {
		out = append(out, c.claims.latest(o.(*corev1.PersistentVolumeClaim), c.cfg.Now()))
	}
	if m := v.Status.MigrationState; m != nil {
		t := c.caches.claims.Lister().Key(reconcile.KeyIn(v.Namespace, m.TargetPersistentStatePVCName))
		if t != nil && t.Labels[vmi.StateLabel] == "" {
			out = append(out, c.claims.latest(t, c.cfg.Now()))
		}
	}
	return out
}

// AsRendered returns the VMI of this name and the facts that its pod is rendered by, but for
// its networks, as they were a moment ago. Nil: there is none, or the Controller does not
// know of it, as while it does not run, or has not all of it, as after its pod was made. The
// VMI is shared: copy it before changing it.
func (c *Controller) AsRendered(namespace, name string) (*vmi.VirtualMachineInstance, pod.Facts) {
	v := c.instances.latest(namespace + "/" + name)
	if v == nil || isReduced(v) {
		return nil, pod.Facts{}
	}
	f := pod.Facts{Claims: map[string]*corev1.PersistentVolumeClaim{}}
	for _, n := range instance.ClaimNames(v) {
		f.Claims[n] = c.caches.claims.Lister().Key(reconcile.KeyIn(namespace, n))
	}
	f.State = launched.State(pod.StateClaim(v, pod.Config{}), c.cachedState(v))
	return v, f
}

// Rendering is how pods are rendered now, without facts, and whether the build is that of
// the Controller's Config.
func (c *Controller) Rendering(build string) (pod.Config, bool) {
	return c.rendering(), build == c.cfg.Launcher.Build
}
