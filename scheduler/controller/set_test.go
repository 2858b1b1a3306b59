package controller

import (
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubefake "k8s.io/client-go/kubernetes/fake"

	"github.com/podvisor/podvisor/internal/reconcile"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func TestNoVMIIsTakenOrDeletedByAnOldStateOfTheSet(t *testing.T) {
	for name, tt := range map[string]struct {
		owned bool
		// change is what was done with the set since it was cached.
		change func(t *testing.T, sets setsIn)
	}{
		"an orphan of a set that was deleted": {false, func(t *testing.T, sets setsIn) {
			require.NoError(t, sets.Delete(t.Context(), "testvmi", metav1.DeleteOptions{}))
		}},
		"a VMI of a set that was scaled up": {true, func(t *testing.T, sets setsIn) {
			o, err := sets.Get(t.Context(), "testvmi", metav1.GetOptions{})
			require.NoError(t, err)
			o.Spec.Replicas = new(int32(1))
			_, err = sets.Update(t.Context(), o, metav1.UpdateOptions{})
			require.NoError(t, err)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			set := vmitest.NewReplicaSet(0)
			v := vmitest.New(vmitest.WithLabel("set", "testvmi"))
			if tt.owned {
				v.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, vmi.VirtualMachineInstanceReplicaSets.GroupVersionKind)}
			}
			vmis, err := client.New(fake.New(set, v).Config())
			require.NoError(t, err)
			c, err := New(Config{Client: vmis, Kube: kubefake.NewClientset(), Launcher: rendering})
			require.NoError(t, err)
			sets, instances := vmis.VirtualMachineInstanceReplicaSets("default"), vmis.VirtualMachineInstances("default")
			cached, err := sets.Get(t.Context(), "testvmi", metav1.GetOptions{})
			require.NoError(t, err)
			before, err := instances.Get(t.Context(), "testvmi", metav1.GetOptions{})
			require.NoError(t, err)
			require.NoError(t, setsOfController(t, c).cached.GetIndexer().Add(cached))
			require.NoError(t, c.caches.instances.GetIndexer().Add(before.DeepCopy()))
			tt.change(t, sets)

			_, err = setsOfController(t, c).reconcile(t.Context(), reconcile.Key(set))
			require.True(t, apierrors.IsConflict(err), "%v", err)
			now, err := instances.Get(t.Context(), "testvmi", metav1.GetOptions{})
			require.NoError(t, err)
			require.Equal(t, before, now)
		})
	}
}

// setsIn are the sets of a namespace.
type setsIn = client.Objects[*vmi.VirtualMachineInstanceReplicaSet, *vmi.VirtualMachineInstanceReplicaSetList]

func setsOfController(t *testing.T, c *Controller) *loopOf[*vmi.VirtualMachineInstanceReplicaSet, *vmi.VirtualMachineInstanceReplicaSetList] {
	t.Helper()
	return loopIn[*vmi.VirtualMachineInstanceReplicaSet, *vmi.VirtualMachineInstanceReplicaSetList](t, c)
}

// loopIn is the controller's loop for objects T.
func loopIn[T vmi.Object, L runtime.Object](t *testing.T, c *Controller) *loopOf[T, L] {
	t.Helper()
	for _, l := range c.kinds {
		if k, ok := l.(*loopOf[T, L]); ok {
			return k
		}
	}
	var o T
	t.Fatalf("the controller has no loop for %T", o)
	return nil
}

// A VM that is deleted with --cascade=orphan leaves its VMI. While the cache does not have
// the deletion yet, the VMI looks like one to adopt, and would then end with the VM.
func TestNoVMIIsAdoptedByAVMWhoseDeletionTheCacheDoesNotHave(t *testing.T) {
	for name, deleted := range map[string]bool{"a VM that is deleted": true, "a VM that stays": false} {
		t.Run(name, func(t *testing.T) {
			vm := vmitest.NewVM(vmi.RunAlways)
			vm.Finalizers = []string{vmi.VMFinalizer}
			vmis, err := client.New(fake.New(vm, vmitest.New()).Config())
			require.NoError(t, err)
			c, err := New(Config{Client: vmis, Kube: kubefake.NewClientset(), Launcher: rendering})
			require.NoError(t, err)
			vms, instances := vmis.VirtualMachines("default"), vmis.VirtualMachineInstances("default")
			cached, err := vms.Get(t.Context(), vm.Name, metav1.GetOptions{})
			require.NoError(t, err)
			before, err := instances.Get(t.Context(), vm.Name, metav1.GetOptions{})
			require.NoError(t, err)
			loop := loopIn[*vmi.VirtualMachine, *vmi.VirtualMachineList](t, c)
			require.NoError(t, loop.cached.GetIndexer().Add(cached))
			require.NoError(t, c.caches.instances.GetIndexer().Add(before.DeepCopy()))
			if deleted {
				require.NoError(t, vms.Delete(t.Context(), vm.Name, metav1.DeleteOptions{}))
			}

			_, err = loop.reconcile(t.Context(), reconcile.Key(vm))
			now, got := instances.Get(t.Context(), vm.Name, metav1.GetOptions{})
			require.NoError(t, got)
			if deleted {
				require.True(t, apierrors.IsConflict(err), "%v", err)
				require.Equal(t, before, now)
				return
			}
			require.NoError(t, err)
			require.True(t, metav1.IsControlledBy(now, cached))
		})
	}
}
