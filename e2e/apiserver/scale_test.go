package apiserver

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/util/retry"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmpool"
)

// autoscaler is the account of Kubernetes' controller of HorizontalPodAutoscalers.
const autoscaler = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"

// That controller reads and writes the scale of a target by its kind, and the pods by the
// selector of the scale. kubectl autoscale makes its object from the target alone.
func TestAnAutoscalerFindsThePodsOfAPoolAndOfASetAndScalesThem(t *testing.T) {
	t.Parallel()
	cfg := rest.CopyConfig(world.config)
	cfg.Impersonate.UserName = autoscaler
	found, err := discovery.NewDiscoveryClientForConfig(cfg)
	require.NoError(t, err)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(found))
	scales, err := scale.NewForConfig(cfg, mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(found))
	require.NoError(t, err)
	for name, tt := range map[string]struct {
		kind   schema.GroupVersionKind
		create func(space)
	}{
		"pool": {vmpool.VirtualMachinePools.GroupVersionKind, func(s space) { s.createPool(poolOf(2)) }},
		"set":  {vmi.VirtualMachineInstanceReplicaSets.GroupVersionKind, func(s space) { s.createSet(setOf(2)) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSpace(t)
			s.controlVMs()
			s.play()
			tt.create(s)
			out, err := kubectl(t, "", "-n", s.name, "autoscale", tt.kind.Kind+"."+tt.kind.Version+"."+tt.kind.Group+"/web", "--min=1", "--max=5", "--cpu=50%")
			require.NoError(t, err, out)
			made, err := world.kube.AutoscalingV2().HorizontalPodAutoscalers(s.name).Get(t.Context(), "web", metav1.GetOptions{})
			require.NoError(t, err)
			ref := autoscalingv2.CrossVersionObjectReference{Kind: tt.kind.Kind, Name: "web", APIVersion: tt.kind.GroupVersion().String()}
			require.Equal(t, ref, made.Spec.ScaleTargetRef)

			to, err := mapper.RESTMapping(tt.kind.GroupKind(), tt.kind.Version)
			require.NoError(t, err)
			resource := to.Resource.GroupResource()
			s.awaitScaled(scales, resource, 2)
			// The controller may write the status between the two, once more as the pods get ready.
			require.NoError(t, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
				now, err := scales.Scales(s.name).Get(t.Context(), resource, "web", metav1.GetOptions{})
				if err != nil {
					return err
				}
				now.Spec.Replicas = 3
				_, err = scales.Scales(s.name).Update(t.Context(), resource, now, metav1.UpdateOptions{})
				return err
			}))
			s.awaitScaled(scales, resource, 3)
		})
	}
}

// awaitScaled waits until the scale of web says so many, and its selector finds so many pods.
func (s space) awaitScaled(scales scale.ScalesGetter, resource schema.GroupResource, n int) {
	s.t.Helper()
	eventually(s.t, func() error {
		is, err := scales.Scales(s.name).Get(s.t.Context(), resource, "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		selector, err := labels.Parse(is.Status.Selector)
		if err != nil {
			return err
		}
		pods, err := world.kube.CoreV1().Pods(s.name).List(s.t.Context(), metav1.ListOptions{LabelSelector: selector.String()})
		if err != nil {
			return err
		}
		if selector.Empty() || int(is.Status.Replicas) != n || len(pods.Items) != n {
			return fmt.Errorf("the scale says %d and selects %d pods by %q, not %d", is.Status.Replicas, len(pods.Items), selector, n)
		}
		return nil
	})
}
