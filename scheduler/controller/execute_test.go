package controller_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubefake "k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/controller"
	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// A loop of an embedder decides, prints the plan, and carries it out. The API servers are
// fakes in memory, in which the test finds the effect.
func ExampleExecute() {
	ctx := context.Background()
	api, err := client.New(fake.New(vmitest.New(vmitest.WithName("hello"))).Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	kube := kubefake.NewClientset()
	v, err := api.VirtualMachineInstances("default").Get(ctx, "hello", metav1.GetOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	plan := instance.Decide(instance.Observed{VMI: v, Config: pod.Config{Launcher: pod.Launcher{Image: "registry.example/virt-launcher:v1"}}})
	fmt.Println(plan)

	v, err = controller.Execute(ctx, controller.Executor{Client: api, Kube: kube}, vmi.VirtualMachineInstances, v, plan)
	if err != nil {
		fmt.Println(err)
		return
	}
	pods, err := kube.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(pods.Items), "pod,", len(v.Finalizers), "finalizer")
	// Output:
	// add finalizer kubevirt.io/foregroundDeleteVirtualMachine
	// create pod virt-launcher-hello-nlr65
	// emit event SuccessfulCreate: Created virtual machine pod virt-launcher-hello-nlr65
	// decide again after 2s
	// 1 pod, 1 finalizer
}

func TestAPlanIsCarriedOutByOneFunction(t *testing.T) {
	t.Parallel()
	v := vmitest.New(vmitest.WithName("web"), vmitest.WithPhase(vmi.PhaseRunning))
	set := &vmi.VirtualMachineInstanceReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "set", UID: "set-uid"}}
	api, err := client.New(fake.New(v, set).Config())
	require.NoError(t, err)
	kube := kubefake.NewClientset()
	x := controller.Executor{Client: api, Kube: kube, Component: "mine"}
	set, err = api.VirtualMachineInstanceReplicaSets("default").Get(t.Context(), "set", metav1.GetOptions{})
	require.NoError(t, err)
	other := vmitest.New(vmitest.WithName("other"))
	other.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, vmi.VirtualMachineInstanceReplicaSets.GroupVersionKind)}
	changed := set.DeepCopy()
	changed.Status.Replicas = 3
	now, err := controller.Execute(t.Context(), x, vmi.VirtualMachineInstanceReplicaSets, set, scheduler.Plan{Actions: []scheduler.Action{
		scheduler.AddFinalizer{Finalizer: "example.com/one"},
		scheduler.AddFinalizer{Finalizer: "example.com/two"},
		scheduler.RemoveFinalizer{Finalizer: "example.com/one"},
		scheduler.SetLabel{Key: "example.com/by", Value: "plan"},
		scheduler.CreateInstance{Instance: other},
		scheduler.WriteStatus[*vmi.VirtualMachineInstanceReplicaSet]{Object: changed},
		scheduler.Emit{Finding: vmi.Finding{Reason: "Made", Message: "it is there"}},
	}})
	require.NoError(t, err)
	require.Equal(t, []string{"example.com/two"}, now.Finalizers)
	require.Equal(t, "plan", now.Labels["example.com/by"])
	require.EqualValues(t, 3, now.Status.Replicas)
	stored, err := api.VirtualMachineInstanceReplicaSets("default").Get(t.Context(), "set", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, stored, now)
	_, err = api.VirtualMachineInstances("default").Get(t.Context(), "other", metav1.GetOptions{})
	require.NoError(t, err)
	events, err := kube.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, events.Items, 1)
	require.Equal(t, "mine", events.Items[0].Source.Component)
}

func TestARefusalOfAPlanHasTheFinding(t *testing.T) {
	t.Parallel()
	v := vmitest.New(vmitest.WithName("web"))
	api, err := client.New(fake.New(v).Config())
	require.NoError(t, err)
	kube := kubefake.NewClientset()
	kube.PrependReactor("create", "pods", func(ktesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(corev1.Resource("pods"), "x", fmt.Errorf("exceeded quota"))
	})
	p, err := pod.Render(v, pod.Config{Launcher: pod.Launcher{Image: "i"}})
	require.NoError(t, err)
	_, err = controller.Execute(t.Context(), controller.Executor{Client: api, Kube: kube}, vmi.VirtualMachineInstances, v,
		scheduler.Plan{Actions: []scheduler.Action{scheduler.CreatePod{Pod: p}, scheduler.SetLabel{Key: "a", Value: "b"}}})
	var refused *controller.Refusal
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "FailedCreate", refused.Reason)
	require.Contains(t, refused.Message, "exceeded quota")
	require.True(t, apierrors.IsForbidden(err))
	stored, err := api.VirtualMachineInstances("default").Get(t.Context(), "web", metav1.GetOptions{})
	require.NoError(t, err)
	require.NotContains(t, stored.Labels, "a", "what follows is not done")
}

func TestAnExecutorNamesTheFieldsToSet(t *testing.T) {
	t.Parallel()
	_, err := controller.Execute(t.Context(), controller.Executor{}, vmi.VirtualMachineInstances, vmitest.New(), scheduler.Plan{})
	require.EqualError(t, err, "controller.Executor: set Client, Kube")
}
