package controller

import (
	"context"
	"errors"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/podvisor/podvisor/internal/reconcile"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/pool"
	"github.com/podvisor/podvisor/scheduler/vm"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/vmpool"
)

// pools are VirtualMachinePools. They are queued when a VM that they control or its VMI
// changes, and one of their revisions.
//
// +podvisor:entry
var pools = KindOf[*vmpool.VirtualMachinePool, *vmpool.VirtualMachinePoolList]{
	Definition: vmpool.VirtualMachinePools,
	Name:       "virt-controller-pool", Observe: observePool, Meanwhile: true,
	Describe: func(p *vmpool.VirtualMachinePool) []any {
		return []any{"replicas", p.Status.Replicas, "ready", p.Status.ReadyReplicas}
	},
	keep:  func(*Controller) func(*vmpool.VirtualMachinePool) { return keepPool },
	whole: wholePool,
	also:  watchForPools,
}

// vmLoop is the loop of VMs.
func (c *Controller) vmLoop() *loopOf[*vmi.VirtualMachine, *vmi.VirtualMachineList] {
	return c.kinds[vms.Name].(*loopOf[*vmi.VirtualMachine, *vmi.VirtualMachineList])
}

func watchForPools(c *Controller, k *loopOf[*vmpool.VirtualMachinePool, *vmpool.VirtualMachinePoolList]) error {
	v := c.vmLoop()
	c.pooled.writer, c.pooled.cached = v.writer, v.cached.Lister().Key
	ofVM := reconcile.OwnedBy[*vmi.VirtualMachine](vmpool.VirtualMachinePools.Kind)
	return errors.Join(
		reconcile.Watch(v.cached, k.loop, func(m *vmi.VirtualMachine) []string {
			c.madeVMs.Seen(reconcile.Key(m), m.UID)
			return ofVM(m)
		}, nil),
		reconcile.Watch(c.caches.instances, k.loop, func(i *vmi.VirtualMachineInstance) []string {
			if m := v.cached.Lister().Key(reconcile.Key(i)); m != nil {
				return ofVM(m)
			}
			return nil
		}, nil),
		reconcile.Watch(c.caches.revisions, k.loop, reconcile.OwnedBy[*appsv1.ControllerRevision](vmpool.VirtualMachinePools.Kind), nil))
}

// observePool reads what a decision about the pool depends on. Before a VM is deleted, changed
// or restarted, the API server says whether the pool is still the same: the cache may not have
// that it was deleted or scaled.
func observePool(ctx context.Context, c *Controller, p *vmpool.VirtualMachinePool) (Decide[*vmpool.VirtualMachinePool], error) {
	written, _ := c.statusWritten.Get(p.UID, c.cfg.Now())
	o := pool.Observed{
		Instances: map[string]*vmi.VirtualMachineInstance{}, Taken: map[string]bool{}, Unguarded: c.cfg.Guarded != nil && !c.cfg.Guarded(),
		Profile: c.rendering().Cluster.Defaults, StatusWritten: written, Now: c.cfg.Now(),
	}
	made, err := c.vmsOf(p, &o)
	if err != nil {
		return nil, err
	}
	if err := c.taken(ctx, p, &o); err != nil {
		return nil, err
	}
	revisions, err := c.caches.revisions.GetIndexer().ByIndex(indexPool, controlledKey(p))
	if err != nil {
		return nil, err
	}
	for _, r := range revisions {
		o.Revisions = append(o.Revisions, deleting(r.(*appsv1.ControllerRevision), &c.deleted, o.Now))
	}
	next := func(p *vmpool.VirtualMachinePool, refusal *vmi.Finding) scheduler.Plan {
		now := o
		now.Pool, now.Refusal = p, refusal
		return pool.Decide(now)
	}
	if slices.ContainsFunc(next(p, nil).Actions, changesVM) {
		if err := isCurrent(ctx, vmpool.VirtualMachinePools.Definition, p, client.Of(c.cfg.Client, vmpool.VirtualMachinePools, p.Namespace).Get); err != nil {
			return nil, err
		}
	}
	return func(p *vmpool.VirtualMachinePool, refusal *vmi.Finding) scheduler.Plan {
		plan := next(p, refusal)
		if slices.ContainsFunc(plan.Actions, is[scheduler.WriteStatus[*vmpool.VirtualMachinePool]]) {
			c.statusWritten.Put(p.UID, o.Now, o.Now, recentFor)
		}
		if made && (plan.Recheck == 0 || plan.Recheck > unseen) {
			plan.Recheck = unseen // the cache may never have it
		}
		return plan
	}, nil
}

// vmsOf gives the observation the VMs that the pool controls, by the cache and own writes, and
// their VMIs. Made says that one was created a moment ago and that the cache has not had it.
func (c *Controller) vmsOf(p *vmpool.VirtualMachinePool, o *pool.Observed) (made bool, err error) {
	v := c.vmLoop()
	cached, err := v.cached.GetIndexer().ByIndex(indexPool, controlledKey(p))
	if err != nil {
		return false, err
	}
	for _, m := range cached {
		m := v.writer.Latest(reconcile.Key(m.(*vmi.VirtualMachine)), m.(*vmi.VirtualMachine))
		if m != nil && metav1.IsControlledBy(m, p) {
			o.VMs = append(o.VMs, deleting(m, &c.deleted, o.Now))
		}
	}
	for _, m := range c.madeVMs.In(p.Namespace, o.Now) {
		if metav1.IsControlledBy(m, p) && v.cached.Lister().Key(reconcile.Key(m)) == nil {
			o.VMs, made = append(o.VMs, deleting(m, &c.deleted, o.Now)), true
		}
	}
	for _, m := range o.VMs {
		if i, _ := c.Instance(reconcile.Key(m)); i != nil {
			o.Instances[m.Name] = i
		}
	}
	return made, nil
}

// taken gives the observation the names that begin like those of VMs of the pool and are in use, and
// the disks that are.
func (c *Controller) taken(ctx context.Context, p *vmpool.VirtualMachinePool, o *pool.Observed) error {
	note := func(name string) {
		if strings.HasPrefix(name, p.Name+"-") {
			o.Taken[name] = true
		}
	}
	all, _ := c.vmLoop().cached.Lister().Namespace(p.Namespace).List(labels.Everything()) // it never fails
	for _, m := range all {
		note(m.Name)
	}
	instances, _ := c.caches.instances.Lister().Namespace(p.Namespace).List(labels.Everything())
	for _, i := range instances {
		note(i.Name)
	}
	claims, _ := c.caches.claims.Lister().Namespace(p.Namespace).List(labels.Everything())
	for _, claim := range claims {
		note(claim.Labels[vmi.StateLabel])
	}
	if t := p.Spec.VirtualMachineTemplate; t == nil || len(t.Spec.DataVolumeTemplates) == 0 {
		return nil
	}
	used, volumes, err := c.dataVolumes.inUse(ctx, p.Namespace, p.UID)
	if err != nil {
		return err
	}
	for _, claim := range claims {
		ref := metav1.GetControllerOfNoCopy(claim)
		if ref != nil && ref.Kind == vm.DataVolumeKind.Kind && claim.DeletionTimestamp == nil {
			used[claim.Name] = used[claim.Name] || !volumes[ref.Name]
		} else {
			used[claim.Name] = used[claim.Name] || belongsElsewhere(claim, p.UID)
		}
	}
	o.Disks = used
	return nil
}

// changesVM reports whether the action deletes, changes or restarts a VM.
func changesVM(a scheduler.Action) bool {
	return is[scheduler.DeleteVM](a) || is[scheduler.ChangeVM](a) || is[scheduler.RestartVM](a)
}
