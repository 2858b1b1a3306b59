package controller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubefake "k8s.io/client-go/kubernetes/fake"

	"github.com/podvisor/podvisor/internal/reconcile"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// reasons are the reasons of the events, in the order in which they were written.
func reasons(t *testing.T, kube *kubefake.Clientset) []string {
	t.Helper()
	all, err := kube.CoreV1().Events("").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	var out []string
	for _, e := range all.Items {
		out = append(out, e.Reason)
	}
	return out
}

// A VM is decided on again when its own status was written, mostly before the cache has the
// deletion of its VMI.
func TestTheDeletionOfAVMIThatTheCacheDoesNotHaveYetIsReportedOnce(t *testing.T) {
	t.Parallel()
	vm := vmitest.NewVM(vmi.RunHalted)
	vm.Finalizers = []string{vmi.VMFinalizer}
	v := vmitest.New(vmitest.WithPhase(vmi.PhaseRunning))
	v.Finalizers = []string{vmi.Finalizer}
	v.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(vm, vmi.VirtualMachines.GroupVersionKind)}
	vmis, err := client.New(fake.New(vm, v).Config())
	require.NoError(t, err)
	kube := kubefake.NewClientset()
	c, err := New(Config{Client: vmis, Kube: kube, Launcher: rendering})
	require.NoError(t, err)
	vm, err = vmis.VirtualMachines("default").Get(t.Context(), vm.Name, metav1.GetOptions{})
	require.NoError(t, err)
	v, err = vmis.VirtualMachineInstances("default").Get(t.Context(), v.Name, metav1.GetOptions{})
	require.NoError(t, err)
	loop := loopIn[*vmi.VirtualMachine, *vmi.VirtualMachineList](t, c)
	require.NoError(t, loop.cached.GetIndexer().Add(vm))
	require.NoError(t, c.caches.instances.GetIndexer().Add(v))
	for range 3 {
		_, err = loop.reconcile(t.Context(), reconcile.Key(vm))
		require.NoError(t, err)
	}
	require.Equal(t, []string{"SuccessfulDelete"}, reasons(t, kube))
	require.Nil(t, v.DeletionTimestamp, "the cache's own is not changed")
}

// The handler of the node writes the status of a deleted VMI meanwhile.
func TestTheDeletionOfAPodThatTheCacheDoesNotHaveYetIsReportedOnce(t *testing.T) {
	t.Parallel()
	v := stored(vmi.PhaseRunning)
	v.DeletionTimestamp = &metav1.Time{Time: time.Now().Add(-time.Hour)}
	v.Status.NodeName, v.Status.ActivePods = "n1", map[types.UID]string{"pod-uid": "n1"}
	p := launcher(t)
	p.Spec.NodeName = "n1"
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	r := newRig(t, v, p)
	require.NoError(t, r.caches.pods.GetIndexer().Add(p))
	for range 3 {
		_, err := r.reconcile(t.Context(), key)
		require.NoError(t, err)
	}
	require.Equal(t, []string{"SuccessfulDelete"}, reasons(t, r.kube))
}
