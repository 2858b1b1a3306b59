package simulate

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/podvisor/podvisor/vmi"
)

// collect deletes the pods of VMIs that are gone, until ctx ends.
func (k *Kubelets) collect(ctx context.Context) {
	vmis := k.config.Collect.Resource(vmi.VirtualMachineInstances.Resource())
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return vmis.List(ctx, o) },
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return vmis.Watch(ctx, o)
			},
		},
		ObjectType: &metav1.PartialObjectMetadata{},
		Handler: cache.ResourceEventHandlerFuncs{DeleteFunc: func(o any) {
			if t, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = t.Obj
			}
			if v, ok := o.(*metav1.PartialObjectMetadata); ok {
				k.collectOf(ctx, v.UID)
			}
		}},
		Transform: func(o any) (any, error) {
			v, ok := o.(*metav1.PartialObjectMetadata)
			if !ok {
				return o, nil
			}
			return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: v.Namespace, Name: v.Name, UID: v.UID, ResourceVersion: v.ResourceVersion}}, nil
		},
	})
	informer.RunWithContext(ctx)
}

// collectOf deletes the pods that the VMI controls.
func (k *Kubelets) collectOf(ctx context.Context, owner types.UID) {
	for _, o := range k.store.List() {
		p := o.(*corev1.Pod)
		if c := metav1.GetControllerOf(p); c == nil || c.UID != owner || p.DeletionTimestamp != nil {
			continue
		}
		err := k.config.Collect.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(p.UID))})
		if err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil {
			k.config.Logger.Warn("delete the pod of a VMI that is gone", "pod", p.Namespace+"/"+p.Name, "err", err)
		}
	}
}
