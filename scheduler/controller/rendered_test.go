package controller

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/podvisor/podvisor/vmi"
)

func TestAPodIsKnownWhileItIsCreatedForItsVMIAsItIs(t *testing.T) {
	t.Parallel()
	v := stored("")
	r := newRig(t, v)
	asked := 0
	r.kube.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		asked++
		p := a.(clienttesting.CreateAction).GetObject().(*corev1.Pod)
		creating := func(pod, instance string, uid types.UID) *corev1.Pod {
			return r.Creating(v.Namespace, pod, instance, uid)
		}
		require.True(t, equality.Semantic.DeepEqual(p, creating(p.Name, v.Name, v.UID)))
		require.Nil(t, creating("other", v.Name, v.UID))
		require.Nil(t, creating(p.Name, "other", v.UID))
		require.Nil(t, creating(p.Name, v.Name, "other"))
		for _, change := range []func(*vmi.VirtualMachineInstance){
			func(v *vmi.VirtualMachineInstance) { v.Generation++ },
			func(v *vmi.VirtualMachineInstance) { v.DeletionTimestamp = &v.CreationTimestamp },
			func(v *vmi.VirtualMachineInstance) { v.UID = "other" },
		} {
			cached := r.caches.instances.Lister().Key(key)
			changed := cached.DeepCopy()
			change(changed)
			changed.ResourceVersion = "9"
			require.NoError(t, r.caches.instances.GetIndexer().Update(changed))
			require.Nil(t, creating(p.Name, v.Name, v.UID))
			require.NoError(t, r.caches.instances.GetIndexer().Update(cached))
		}
		return false, nil, nil
	})
	_, err := r.reconcile(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, 1, asked)
	require.Empty(t, r.rendered.all, "nothing is kept")
}
