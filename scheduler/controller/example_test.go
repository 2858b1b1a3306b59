package controller_test

import (
	"context"
	"log/slog"
	"os"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/podvisor/podvisor/scheduler/controller"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi/client"
)

// The controller in the process of an embedder.
func Example() {
	cfg, err := rest.InClusterConfig()
	if err != nil {
		return // not in a pod
	}
	vmis, err := client.New(cfg)
	if err != nil {
		panic(err)
	}
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		panic(err)
	}
	c, err := controller.New(controller.Config{
		Client: vmis, Kube: kube,
		Pods:   pod.Config{Image: "registry.example/virt-launcher:v1"},
		Logger: slog.New(slog.NewJSONHandler(os.Stderr, nil)),
	})
	if err != nil {
		panic(err)
	}
	lease := controller.Lease{Kube: kube, Namespace: "kubevirt", Name: "virt-controller", Identity: os.Getenv("HOSTNAME")}
	if err := controller.Lead(context.Background(), lease, c.Run); err != nil {
		panic(err)
	}
	// Output:
}
