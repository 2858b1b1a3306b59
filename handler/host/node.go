package host

import (
	"cmp"
	"context"
	"log/slog"
	"slices"

	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"

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
	// KVM says whether KVM is offered to pods: auto (if guests can run on it), yes or no.
	// Empty: auto. The other devices that guests use are offered if the kernel has them,
	// and if the configuration serves them.
	KVM string
	// PluginDir is the kubelet's folder of device plugins, and CDIDir the container
	// runtime's folder of CDI specifications. Required.
	PluginDir, CDIDir string
	// Labels is by what the labels about processors are known. Its KVM, Settings and
	// Logger are those of the node.
	Labels Labels
	// Annotations are further annotations of the node, of which an empty one is removed. Nil:
	// there are none.
	Annotations map[string]string
	// Settings is the cluster's configuration, which must run. Required.
	Settings *live.Watcher
	// Uninstalled returns, at the end, whether all that was put on the node is to be
	// removed: see [Uninstalled]. Nil: it stays.
	Uninstalled func(context.Context) bool
	// Logger logs what changes. Nil: nothing is logged.
	Logger *slog.Logger
}

// Run does it until ctx ends, except while KubeVirt itself is installed.
func (n Node) Run(ctx context.Context) error {
	devices, err := device.Offer("/sys", device.Choice(cmp.Or(n.KVM, string(device.Auto))), cmp.Or(n.Logger, slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	l := n.Labels
	l.KVM = slices.ContainsFunc(devices, func(d device.Device) bool { return d.Name == device.KVM })
	l.Settings, l.Logger = n.Settings, n.Logger
	labels, err := l.Of(ctx)
	if err != nil {
		return err
	}
	var heartbeat *node.Heartbeat
	plugins := device.New(device.Config{
		Devices: devices, PluginDir: n.PluginDir, CDIDir: n.CDIDir, Logger: n.Logger,
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

// Uninstalled returns the function for [Node.Uninstalled]: whether this process, which
// ends, has no successor on the node, since the DaemonSet that it is of or the definition
// of VMIs is being deleted, or the rights to read them are. If the API server cannot be
// asked, it has one. An empty name of the DaemonSet: only the definition of VMIs counts.
func Uninstalled(m metadata.Interface, namespace, daemonSet string) func(context.Context) bool {
	return node.Removal{Metadata: m, Namespace: namespace, DaemonSet: daemonSet}.Uninstalled
}
