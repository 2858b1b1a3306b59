package simulate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/podvisor/podvisor/handler"
	"github.com/podvisor/podvisor/handler/controller"
	"github.com/podvisor/podvisor/launcher/control"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
)

// Handlers are the controllers of virt-handler on several nodes, in one process.
type Handlers struct {
	// Nodes are the names of the nodes. Required.
	Nodes []string
	// Pods is the kubelet's folder of pods of a node: [Kubelets.Pods]. Required.
	Pods func(node string) string
	// Access is the configuration of the client of the handler of a node. Required.
	Access func(node string) (*rest.Config, error)
	// Logger takes what the handlers log. Nil: nothing is logged.
	Logger *slog.Logger
}

// Run handles the VMIs of the nodes until ctx ends. Guests go on.
func (h Handlers) Run(ctx context.Context) error {
	var all []*controller.Controller
	for _, n := range h.Nodes {
		c, err := h.handler(n)
		if err != nil {
			return fmt.Errorf("handler of node %s: %w", n, err)
		}
		all = append(all, c)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, c := range all {
		wg.Go(func() {
			errs[i] = c.Run(ctx)
			cancel()
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (h Handlers) handler(node string) (*controller.Controller, error) {
	access, err := h.Access(node)
	if err != nil {
		return nil, err
	}
	instances, err := client.New(access)
	if err != nil {
		return nil, err
	}
	// As virt-handler does: the definitions in the cluster are those of this tree.
	instances.ReplaceStatuses(func() bool { return true })
	events, err := corev1.NewForConfig(access)
	if err != nil {
		return nil, err
	}
	return controller.New(controller.Config{
		Node: node, Client: instances, Events: events, KubeletPods: h.Pods(node), Bind: bind, Logger: h.Logger,
	})
}

// bind says that the interfaces of a VMI are bound. Nothing is done.
func bind(_ context.Context, _ *control.Client, v *vmi.VirtualMachineInstance) (network.Config, error) {
	var c network.Config
	address := Address(handler.ActivePod(v))
	for i, n := range v.Spec.Domain.Devices.Interfaces {
		mac := fmt.Sprintf("02:00:00:00:00:%02x", i)
		c.Attachments = append(c.Attachments, network.Attachment{Name: n.Name, Tap: fmt.Sprintf("tap%d", i), MAC: mac})
		c.Interfaces = append(c.Interfaces, vmi.InterfaceStatus{Name: n.Name, MAC: mac, IP: address, IPs: []string{address}})
	}
	return c, nil
}
