package controller

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/podvisor/podvisor/internal/reconcile"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/vm"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client/informer"
)

// vms are VirtualMachines. They are queued when the VMI of their name, one of their
// revisions, a claim, a DataVolume, or what they name changes.
//
// +podvisor:entry
var vms = KindOf[*vmi.VirtualMachine, *vmi.VirtualMachineList]{
	Definition: vmi.VirtualMachines,
	Name:       "virt-controller-vm", Observe: observeVM,
	Describe: func(v *vmi.VirtualMachine) []any { return []any{"status", v.Status.PrintableStatus} },
	Indexers: VMIndexers(), keep: func(*Controller) func(*vmi.VirtualMachine) { return keepVM }, whole: wholeVM,
	wholeStatus: func(*vmi.VirtualMachine) bool { return true },
	Instances: func(v *vmi.VirtualMachineInstance, vms informer.Lister[*vmi.VirtualMachine]) []string {
		key := reconcile.Key(v)
		if vms.Key(key) == nil {
			return nil
		}
		return []string{key}
	},
	also: watchForVMs,
}

func watchForVMs(c *Controller, k *loopOf[*vmi.VirtualMachine, *vmi.VirtualMachineList]) error {
	c.dataVolumes.changed = func(key string) {
		waiting, _ := k.cached.GetIndexer().IndexKeys(IndexClaim, key) // the index exists
		for _, vm := range waiting {
			k.loop.Add(vm)
		}
	}
	return errors.Join(
		reconcile.Watch(c.caches.revisions, k.loop, reconcile.OwnedBy[*appsv1.ControllerRevision](vmi.VirtualMachines.Kind), nil),
		reconcile.Watch(c.caches.claims, k.loop, func(p *corev1.PersistentVolumeClaim) []string {
			keys, _ := k.cached.GetIndexer().IndexKeys(IndexClaim, reconcile.Key(p)) // the index exists
			return keys
		}, nil),
		watchSizes(c, k))
}

// observeVM reads what a decision about the VM depends on. Before a VMI is adopted the API
// server says whether the VM is still the same: a VM whose deletion the cache does not have
// yet may just have left it.
func observeVM(ctx context.Context, c *Controller, v *vmi.VirtualMachine) (Decide[*vmi.VirtualMachine], error) {
	o := vm.Observed{
		Unguarded: c.cfg.Guarded != nil && !c.cfg.Guarded(),
		Profile:   c.rendering().Cluster.Defaults, Bindings: c.cfg.Launcher.Bindings, Jitter: rand.Float64(), Now: c.cfg.Now(),
	}
	var made bool
	o.VMI, made = c.Instance(reconcile.Key(v))
	revisions, err := c.caches.revisions.GetIndexer().ByIndex(indexVM, controlledKey(v))
	if err != nil {
		return nil, err
	}
	for _, r := range revisions {
		o.Revisions = append(o.Revisions, r.(*appsv1.ControllerRevision))
	}
	if err := c.compared(ctx, v, &o); err != nil {
		return nil, err
	}
	if err := c.sizesOf(ctx, v, &o); err != nil {
		return nil, err
	}
	if o.VMI == nil || o.VMI.Status.Phase != vmi.PhaseRunning {
		if o.Claims, err = c.claimsOfVM(ctx, v); err != nil {
			return nil, err
		}
	}
	if o.VMI == nil {
		if o.DataVolumes, err = c.dataVolumes.of(ctx, v); err != nil {
			return nil, err
		}
	}
	next := func(v *vmi.VirtualMachine, refusal *vmi.Finding) scheduler.Plan {
		now := o
		now.VM, now.Refusal = v, refusal
		return vm.Decide(now)
	}
	if adopts(next(v, nil)) {
		if err := isCurrent(ctx, vmi.VirtualMachines.Definition, v, c.cfg.Client.VirtualMachines(v.Namespace).Get); err != nil {
			return nil, err
		}
	}
	return func(v *vmi.VirtualMachine, refusal *vmi.Finding) scheduler.Plan {
		p := next(v, refusal)
		if made && p.Recheck == 0 {
			p.Recheck = unseen // the cache may never have it
		}
		return p
	}, nil
}

// compared gives the revision that the decision about v compares its content, which the
// cache does not keep. It never changes, so it is read once in a while.
func (c *Controller) compared(ctx context.Context, v *vmi.VirtualMachine, o *vm.Observed) error {
	now := *o
	now.VM = v
	r := now.Compared()
	if r == nil {
		return nil
	}
	whole, ok := c.revisions.Get(r.UID, o.Now)
	if !ok {
		// By its name in a list: the account may read revisions by no other request.
		found, err := c.cfg.Kube.AppsV1().ControllerRevisions(r.Namespace).List(ctx, metav1.ListOptions{
			FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, r.Name).String(),
		})
		if err != nil {
			return fmt.Errorf("read ControllerRevision %s/%s: %w", r.Namespace, r.Name, err)
		}
		i := slices.IndexFunc(found.Items, func(f appsv1.ControllerRevision) bool { return f.UID == r.UID })
		if i < 0 {
			return nil // it is gone
		}
		whole = &found.Items[i]
		c.revisions.Put(r.UID, whole, o.Now, recentFor)
	}
	o.Revisions[slices.Index(o.Revisions, r)] = whole
	return nil
}

// unseen is the time between two looks at a VMI that was created and that the cache
// has not had: it may have been deleted before the cache saw it.
const unseen = 5 * time.Second

// claimNames are the names of the claims that the volumes of the template are in.
func claimNames(v *vmi.VirtualMachine) []string {
	if v.Spec.Template == nil {
		return nil
	}
	var names []string
	for i := range v.Spec.Template.Spec.Volumes {
		if name := v.Spec.Template.Spec.Volumes[i].Claim(); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// claimsOfVM are the claims of the template's volumes, by the cache and where it has
// none by the API server.
func (c *Controller) claimsOfVM(ctx context.Context, v *vmi.VirtualMachine) (map[string]*corev1.PersistentVolumeClaim, error) {
	names := claimNames(v)
	claims := map[string]*corev1.PersistentVolumeClaim{}
	for _, n := range names {
		found := c.caches.claims.Lister().Key(reconcile.KeyIn(v.Namespace, n))
		if found == nil {
			var err error
			if found, err = read(ctx, "claim", n, c.cfg.Kube.CoreV1().PersistentVolumeClaims(v.Namespace).Get); err != nil {
				return nil, err
			}
		}
		claims[n] = found
	}
	return claims, nil
}
