package apiserver

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/podvisor/podvisor/network/cni"
	"github.com/podvisor/podvisor/scheduler/controller"
	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// definitionKind is the kind of Multus, without its schema.
const definitionKind = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: network-attachment-definitions.k8s.cni.cncf.io},
spec: {group: k8s.cni.cncf.io, scope: Namespaced, names: {kind: NetworkAttachmentDefinition, plural: network-attachment-definitions, singular: network-attachment-definition, listKind: NetworkAttachmentDefinitionList},
versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`

// awaitNotSynchronized waits until the VMI is Pending for the reason, and returns the message.
func (s space) awaitNotSynchronized(name, reason string) (message string) {
	s.t.Helper()
	eventually(s.t, func() error {
		v, err := s.vmis.Get(s.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		c := v.Status.Condition(vmi.ConditionSynchronized)
		if v.Status.Phase != vmi.PhasePending || c == nil || c.Reason != reason {
			return fmt.Errorf("VMI %s is %s: %+v", name, v.Status.Phase, v.Status.Conditions)
		}
		message = c.Message
		return nil
	})
	return message
}

// virt-controller reads the definitions with its own rights, also while the cluster has no
// Multus: the kind comes while the VMI waits for it.
func TestThePodOfAVMIAsksForWhatItsNetworksNeed(t *testing.T) {
	s, infra := newSpace(t), newSpace(t)
	all, err := dynamic.NewForConfig(world.config)
	require.NoError(t, err)
	s.control(func(c *controller.Config) {
		c.Dynamic, err = dynamic.NewForConfig(asController())
		require.NoError(t, err)
	})
	v := vmitest.New(vmitest.WithMasquerade("default"), vmitest.WithMultus("red", infra.name+"/functions"), vmitest.WithMultus("blue", "more"),
		vmitest.WithMultus("green", infra.name+"/functions"), vmitest.WithMultus("lan", "lan"))
	v.ObjectMeta = metav1.ObjectMeta{Name: "fast"}
	for n := 1; n <= 3; n++ {
		v.Spec.Domain.Devices.Interfaces[n].InterfaceBinding = vmi.InterfaceBinding{SRIOV: &vmi.InterfaceSRIOV{}}
	}
	v, err = s.vmis.Create(t.Context(), v, metav1.CreateOptions{})
	require.NoError(t, err)
	missing := s.awaitNotSynchronized("fast", "NoNetworkFound")
	require.Contains(t, missing, "network blue: NetworkAttachmentDefinition more does not exist in namespace "+s.name)

	said, err := kubectl(t, definitionKind, "apply", "--server-side", "-f", "-")
	require.NoError(t, err, said)
	t.Cleanup(func() {
		_ = all.Resource(definitions).Delete(context.Background(), "network-attachment-definitions.k8s.cni.cncf.io", metav1.DeleteOptions{})
	})
	define := func(namespace, name, resource string) {
		eventually(t, func() error {
			_, err := all.Resource(cni.DefinitionResource).Namespace(namespace).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
				"metadata": map[string]any{"name": name, "annotations": map[string]any{cni.ResourceAnnotation: resource}},
			}}, metav1.CreateOptions{})
			return err // the kind is served a moment after it was made
		})
	}
	define(infra.name, "functions", "example.com/functions")
	define(s.name, "lan", "bridge.network.kubevirt.io/br1")
	define(s.name, "more", "memory")
	require.Contains(t, s.awaitNotSynchronized("fast", instance.NetworkResourceInvalid), `"memory" is no resource of a device plugin`)

	require.NoError(t, all.Resource(cni.DefinitionResource).Namespace(s.name).Delete(t.Context(), "more", metav1.DeleteOptions{}))
	define(s.name, "more", "example.com/more")
	var made *corev1.Pod
	eventually(t, func() (err error) {
		made, err = world.kube.CoreV1().Pods(s.name).Get(t.Context(), pod.Name(v), metav1.GetOptions{})
		return err
	})
	c := made.Spec.Containers[0]
	for name, count := range map[corev1.ResourceName]int64{"example.com/functions": 2, "example.com/more": 1, "bridge.network.kubevirt.io/br1": 1} {
		require.Equal(t, count, c.Resources.Limits.Name(name, "").Value(), name)
		require.Equal(t, count, c.Resources.Requests.Name(name, "").Value(), name)
	}
	require.Equal(t, []corev1.EnvVar{
		{Name: "KUBEVIRT_RESOURCE_NAME_red", Value: "example.com/functions"},
		{Name: "KUBEVIRT_RESOURCE_NAME_blue", Value: "example.com/more"},
		{Name: "KUBEVIRT_RESOURCE_NAME_green", Value: "example.com/functions"},
	}, c.Env)
}
