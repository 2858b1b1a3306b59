package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/podvisor/podvisor/internal/reconcile"
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
	if d != nil {
		f.Networks, err = readDefinitions(ctx, d, v)
	}
	return f, err
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
	return v, f
}

// Rendering is how pods are rendered now, without facts, and whether the build is that of
// the Controller's Config.
func (c *Controller) Rendering(build string) (pod.Config, bool) {
	return c.rendering(), build == c.cfg.Launcher.Build
}
