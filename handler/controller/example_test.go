package controller_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"
	kubefake "k8s.io/client-go/kubernetes/fake"

	"github.com/podvisor/podvisor/handler/controller"
	"github.com/podvisor/podvisor/launcher/control"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// A handler and a launcher in one process, with API servers in memory. The handler finds
// the VMI of its node, connects to the launcher of its pod, puts the VMI to it, and reports
// what the launcher says.
func Example() {
	dir, err := os.MkdirTemp("", "hc")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	instance := vmitest.New(vmitest.WithName("hello"))
	instance.Status = vmi.VirtualMachineInstanceStatus{Phase: vmi.PhaseScheduled, NodeName: "n1", ActivePods: map[types.UID]string{"its-pod": "n1"}}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	// The launcher. In a pod it is virt-launcher, and the guest is a real one.
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		fmt.Println(err)
		return
	}
	var launcher *control.Server
	launcher = control.NewServer(control.ServerConfig{Namespace: instance.Namespace, Name: instance.Name, UID: instance.UID, Put: func(d protocol.Desired) error {
		launcher.Publish(protocol.State{Generation: d.Generation, Phase: protocol.Running, Machine: "pc-q35-7.2"})
		return nil
	}})
	served := make(chan error, 1)
	go func() { served <- launcher.Serve(ctx, l) }()

	// The handler.
	vmis, err := client.New(fake.New(instance).Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := controller.New(controller.Config{
		Node: "n1", Client: vmis, Events: kubefake.NewClientset().CoreV1(),
		// On a node it is left out: the socket is found in the kubelet's folder of pods.
		Dial: func(ctx context.Context, podUID string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(dir, "s"))
		},
		// On a node it is left out: the network is bound in the namespace of the pod.
		Bind: func(context.Context, *control.Client, *vmi.VirtualMachineInstance) (network.Config, error) {
			return network.Config{}, nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()

	v, err := client.WaitForPhase(ctx, vmis.VirtualMachineInstances(instance.Namespace), instance.Name, vmi.PhaseRunning)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(v.Name, "is", v.Status.Phase, "with the machine type", v.Status.Machine.Type)
	stop()
	fmt.Println(<-ended, <-served)
	// Output:
	// hello is Running with the machine type pc-q35-7.2
	// <nil> <nil>
}
