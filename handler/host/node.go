package host

import (
	"context"
	"log/slog"
	"slices"

	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/podvisor/podvisor/internal/handler/capability"
	"github.com/podvisor/podvisor/internal/handler/device"
	"github.com/podvisor/podvisor/internal/handler/node"
	"github.com/podvisor/podvisor/internal/ops"
	"github.com/podvisor/podvisor/vmi/config/live"
)

// Node is what a handler does for its node as a whole: it offers devices to pods, and
// keeps the labels and annotations that say whether and which VMIs can run there.
type Node struct {
	// Name is the node's name, and Nodes writes node objects. Required.
	Name  string
	Nodes corev1.NodeInterface
	// Devices are what the node has to offer: see device.Offer. Which of them are
	// offered follows the configuration, as package internal/handler/capability says.
	Devices []device.Device
	// PluginDir and CDIDir are folders of the kubelet and the container runtime: see
	// device.Config. Required.
	PluginDir, CDIDir string
	// Labels is by what the labels about processors are known. Its KVM, Settings and
	// Logger are those of the node.
	Labels Labels
	// Annotations are further annotations of the node. Nil: there are none.
	Annotations map[string]string
	// Settings is the cluster's configuration, which must run. Required.
	Settings *live.Watcher
	// Uninstalled returns, at the end, whether all that was put on the node is to be
	// removed. Nil: it stays.
	Uninstalled func(context.Context) bool
	// Logger logs what changes. Nil: nothing is logged.
	Logger *slog.Logger
}

// Run does it until ctx ends, except while KubeVirt itself is installed.
func (n Node) Run(ctx context.Context) error {
	l := n.Labels
	l.KVM = slices.ContainsFunc(n.Devices, func(d device.Device) bool { return d.Name == device.KVM })
	l.Settings, l.Logger = n.Settings, n.Logger
	labels, err := l.Of(ctx)
	if err != nil {
		return err
	}
	var heartbeat *node.Heartbeat
	plugins := device.New(device.Config{
		Devices: n.Devices, PluginDir: n.PluginDir, CDIDir: n.CDIDir, Logger: n.Logger,
		Offered:     func(d device.Device) bool { return capability.Offered(d.Resource, n.Settings.Config()) },
		Changed:     func() { heartbeat.Changed() },
		Uninstalled: n.Uninstalled,
	})
	heartbeat = node.New(node.Config{
		Nodes: n.Nodes, Name: n.Name, Annotations: n.Annotations, Labels: labels, Owned: capability.IsProcessorLabel,
		Schedulable: func() bool { return plugins.Registered(device.Tun) },
		Uninstalled: n.Uninstalled, Logger: n.Logger,
	})
	n.Settings.OnChange(heartbeat.Changed)
	return ops.Together(ctx, n.Settings.Alone(plugins.Run), n.Settings.Alone(heartbeat.Run))
}
