package controller_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/podvisor/podvisor/handler/controller"
	"github.com/podvisor/podvisor/handler/socket"
	"github.com/podvisor/podvisor/vmi/client"
)

func Example() {
	run := func(ctx context.Context, cfg *rest.Config) error {
		instances, err := client.New(cfg)
		if err != nil {
			return err
		}
		kube, err := corev1.NewForConfig(cfg)
		if err != nil {
			return err
		}
		pods, err := socket.Open("/var/lib/kubelet/pods")
		if err != nil {
			return err
		}
		defer pods.Close()
		c, err := controller.New(controller.Config{Node: "n1", Client: instances, Events: kube, Dial: pods.Dial})
		if err != nil {
			return err
		}
		return c.Run(ctx)
	}
	_ = run // needs a node
	_, err := controller.New(controller.Config{})
	fmt.Println(err)
	// Output: the handler's controller needs Node, Client, Events and Dial
}
