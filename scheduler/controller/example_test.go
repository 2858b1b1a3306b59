package controller_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubefake "k8s.io/client-go/kubernetes/fake"

	"github.com/podvisor/podvisor/scheduler/controller"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// The controller in the process of an embedder, here with API servers in memory. It makes
// a pod for the VMI, and hands it over when the kubelet says that the pod runs.
func Example() {
	vmis, err := client.New(fake.New(vmitest.New(vmitest.WithName("hello"))).Config()) // any rest.Config
	if err != nil {
		fmt.Println(err)
		return
	}
	kube := kubefake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	c, err := controller.New(controller.Config{
		Client: vmis, Kube: kube, Launcher: pod.Launcher{Image: "registry.example/virt-launcher:v1"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	created, err := kube.CoreV1().Pods("default").Watch(ctx, metav1.ListOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }() // in a cluster with several replicas: by controller.Lead

	p := (<-created.ResultChan()).Object.(*corev1.Pod)
	fmt.Println("pod", p.Name, "of", p.Spec.Containers[0].Image)

	// What the scheduler and the kubelet do.
	p = p.DeepCopy()
	p.Spec.NodeName, p.Status.Phase = "n1", corev1.PodRunning
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: vmi.ComputeContainer, Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	if _, err := kube.CoreV1().Pods("default").Update(ctx, p, metav1.UpdateOptions{}); err != nil {
		fmt.Println(err)
		return
	}
	v, err := client.WaitForPhase(ctx, vmis.VirtualMachineInstances("default"), "hello", vmi.PhaseScheduled)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(v.Status.Phase, "on", v.Status.NodeName)
	stop()
	fmt.Println(<-ended)
	// Output:
	// pod virt-launcher-hello-nlr65 of registry.example/virt-launcher:v1
	// Scheduled on n1
	// <nil>
}
