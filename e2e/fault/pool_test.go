package fault

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/vmitest"
	"github.com/podvisor/podvisor/vmi/vmpool"
)

// poolName is the name of the pool of a trace, poolSize how many VMs it has, and poolVMs which
// VMs it makes.
const (
	poolName = "pool"
	poolSize = 2
)

var poolVMs = map[string]int{poolName + "-0": 1, poolName + "-1": 1}

// ofPools says that the step is one that pools alone have.
func ofPools(s Step) bool {
	return s.names("virtualmachinepools")
}

// pool is the pool of a trace. One of its VMs is restarted at a time, and the one with the
// highest ordinal goes first.
func pool() *vmpool.VirtualMachinePool {
	labels := map[string]string{"app": poolName}
	v := vmitest.NewVM(vmi.RunAlways, on(poolName)...)
	v.Spec.Template.ObjectMeta.Labels = labels
	p := &vmpool.VirtualMachinePool{ObjectMeta: metav1.ObjectMeta{Name: poolName}}
	p.Spec = vmpool.VirtualMachinePoolSpec{
		Replicas: new(int32(poolSize)), Selector: &metav1.LabelSelector{MatchLabels: labels}, MaxUnavailable: new(intstr.FromInt32(1)),
		VirtualMachineTemplate: &vmpool.VirtualMachineTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: v.Spec},
		ScaleInStrategy: &vmpool.PoolScaleInStrategy{Proactive: &vmpool.PoolProactiveScaleIn{
			SelectionPolicy: &vmpool.PoolSelectionPolicy{SortPolicy: new(vmpool.SortDescending)}}},
	}
	return p
}

// template changes the memory of the VMs of a pool, and scaleIn leaves it one VM.
const (
	template = `{"spec":{"virtualMachineTemplate":{"spec":{"template":{"spec":{"domain":{"memory":{"guest":"96Mi"}}}}}}}}`
	scaleIn  = `{"spec":{"replicas":1}}`
)

// pooling does a step of the trace with the pool, if the trace has one.
func (u *user) pooling(do func(client.Objects[*vmpool.VirtualMachinePool, *vmpool.VirtualMachinePoolList]) error) error {
	if !u.pools {
		return nil
	}
	return do(client.Of(world.vmis, vmpool.VirtualMachinePools, u.namespace))
}

func (u *user) createPool(ctx context.Context) error {
	return u.pooling(func(all client.Objects[*vmpool.VirtualMachinePool, *vmpool.VirtualMachinePoolList]) error {
		_, err := all.Create(ctx, pool(), metav1.CreateOptions{})
		return err
	})
}

// patchPool changes the pool. With rolls the VMs get another template, one after the other.
func (u *user) patchPool(ctx context.Context, patch string, rolls bool) error {
	return u.pooling(func(all client.Objects[*vmpool.VirtualMachinePool, *vmpool.VirtualMachinePoolList]) error {
		world.nodes.pools.roll(u.namespace, rolls)
		_, err := all.Patch(ctx, poolName, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	})
}

func (u *user) deletePool(ctx context.Context) error {
	return u.pooling(func(all client.Objects[*vmpool.VirtualMachinePool, *vmpool.VirtualMachinePoolList]) error {
		return all.Delete(ctx, poolName, metav1.DeleteOptions{})
	})
}

// pooled is the history of the pool of a namespace.
type pooled struct {
	made  map[string]int       // VMs, by name
	there map[types.UID]string // VMs, by UID
	down  map[string]bool      // the VMs whose VMI is not ready
	rolls bool
	errs  []error
}

// pools are the histories of the pools, by namespace.
type pools struct {
	mu  sync.Mutex
	all map[string]*pooled
}

func newPools() *pools { return &pools{all: map[string]*pooled{}} }

// of is the history of a namespace. The caller has locked p.
func (p *pools) of(namespace string) *pooled {
	if p.all[namespace] == nil {
		p.all[namespace] = &pooled{made: map[string]int{}, there: map[types.UID]string{}, down: map[string]bool{}}
	}
	return p.all[namespace]
}

// roll says that from now on VMs are restarted one after the other, or that others are not ready
// as well.
func (p *pools) roll(namespace string, rolls bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.of(namespace).rolls = rolls
}

// vm notes a VM of a pool.
func (p *pools) vm(t watch.EventType, v *vmi.VirtualMachine) {
	if ref := metav1.GetControllerOfNoCopy(v); ref == nil || ref.Kind != vmpool.VirtualMachinePools.Kind {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.of(v.Namespace)
	if t == watch.Deleted {
		delete(h.there, v.UID)
		return
	}
	if _, known := h.there[v.UID]; known {
		return
	}
	h.made[v.Name]++
	h.there[v.UID] = v.Name
	if len(h.there) > poolSize {
		h.errs = append(h.errs, fmt.Errorf("the pool has %d VMs: %v", len(h.there), h.there))
	}
}

// instance notes a VMI of a VM.
func (p *pools) instance(t watch.EventType, v *vmi.VirtualMachineInstance) {
	if poolVMs[v.Name] == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.of(v.Namespace)
	h.down[v.Name] = t == watch.Deleted || v.DeletionTimestamp != nil || v.Status.Phase != vmi.PhaseRunning
	if down := slices.DeleteFunc(slices.Sorted(maps.Keys(h.down)), func(name string) bool { return !h.down[name] }); h.rolls && len(down) > 1 {
		h.errs = append(h.errs, fmt.Errorf("VMs %q of the pool are not ready at the same time", down))
	}
}

// oracle says what is wrong with the VMs of the pool of a namespace that are gone: each ordinal was
// made once, there were never more VMs than were wanted, and one at a time was restarted.
func (p *pools) oracle(namespace string, wanted map[string]int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.of(namespace)
	errs := slices.Clone(h.errs)
	if !maps.Equal(h.made, wanted) {
		errs = append(errs, fmt.Errorf("the VMs of the pool that were made are %v, not %v", h.made, wanted))
	}
	if len(h.there) > 0 {
		errs = append(errs, fmt.Errorf("VMs of the pool are still there: %v", h.there))
	}
	return errors.Join(errs...)
}

// left says which objects are still there that a trace has deleted, or whose owners it has.
func left(all shot) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(all)) {
		switch kind, _, _ := strings.Cut(name, " "); {
		case name == "PersistentVolumeClaim "+shared, name == "PersistentVolumeClaim "+own, kind == "VirtualMachineInstanceMigration":
		default:
			errs = append(errs, fmt.Errorf("%s is still there", name))
		}
	}
	return errors.Join(errs...)
}

func TestTheVMsOfAPoolAreCountedAtAnyTime(t *testing.T) {
	t.Parallel()
	named := func(uid types.UID, name string) *vmi.VirtualMachine {
		return &vmi.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: uid,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(pool(), vmpool.VirtualMachinePools.GroupVersionKind)}}}
	}
	instance := func(name string, phase vmi.Phase, deleted bool) *vmi.VirtualMachineInstance {
		v := &vmi.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}, Status: vmi.VirtualMachineInstanceStatus{Phase: phase}}
		if deleted {
			v.DeletionTimestamp = &metav1.Time{Time: time.Unix(0, 0)}
		}
		return v
	}
	p := newPools()
	p.vm(watch.Added, named("1", "pool-0"))
	p.vm(watch.Modified, named("1", "pool-0"))
	p.vm(watch.Added, named("2", "pool-1"))
	p.vm(watch.Added, &vmi.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "alone"}})
	for name := range poolVMs {
		p.instance(watch.Added, instance(name, vmi.PhaseScheduled, false))
		p.instance(watch.Modified, instance(name, vmi.PhaseRunning, false))
	}
	p.roll("a", true)
	p.instance(watch.Modified, instance("pool-0", vmi.PhaseRunning, true))
	p.instance(watch.Added, instance("pool-0", vmi.PhaseScheduling, false))
	p.instance(watch.Modified, instance("pool-0", vmi.PhaseRunning, false))
	p.instance(watch.Modified, instance("pool-1", vmi.PhaseRunning, true))
	require.EqualError(t, p.oracle("a", poolVMs), "VMs of the pool are still there: map[1:pool-0 2:pool-1]")
	p.instance(watch.Modified, instance("pool-0", vmi.PhaseSucceeded, false))
	p.vm(watch.Added, named("3", "pool-1"))
	for uid, name := range map[types.UID]string{"1": "pool-0", "2": "pool-1", "3": "pool-1"} {
		p.vm(watch.Deleted, named(uid, name))
	}
	require.EqualError(t, p.oracle("a", poolVMs), `VMs ["pool-0" "pool-1"] of the pool are not ready at the same time
the pool has 3 VMs: map[1:pool-0 2:pool-1 3:pool-1]
the VMs of the pool that were made are map[pool-0:1 pool-1:2], not map[pool-0:1 pool-1:1]`)
	require.NoError(t, p.oracle("b", nil))
	require.EqualError(t, left(shot{"PersistentVolumeClaim own": true, "Pod x": true}), "Pod x is still there")
}
