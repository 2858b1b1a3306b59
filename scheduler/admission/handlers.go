package admission

import (
	"context"
	"log/slog"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/scheduler/sizing"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/config/live"
	"github.com/podvisor/podvisor/vmi/instancetype"
)

// All is what all webhooks of an installation need.
type All struct {
	// Settings is the cluster's configuration. Required.
	Settings *live.Watcher
	// Kube, VMIs and Metadata read what reviews depend on. They must not wait behind
	// other work. Required.
	Kube     kubernetes.Interface
	VMIs     *client.Client
	Metadata metadata.Interface
	// Cached returns the cached pod of this name and its VMI: see [Evictions]. Nil:
	// nothing is cached.
	Cached func(namespace, pod string) (*corev1.Pod, *vmi.VirtualMachineInstance)
	// Bindings are those of [Owned]. Nil: [network.Bindings].
	Bindings []network.Binding
	// Launchers is what launcher pods are compared with. Required.
	Launchers Launchers
	// Serving knows the token of the paths. Required.
	Serving *Serving
	// Namespace is where Podvisor is installed. Required.
	Namespace string
	// Logger logs what is refused. Nil: nothing is logged.
	Logger *slog.Logger
}

// Handlers are all webhooks by their paths, each kind with a limit of its own, and all at
// secret paths. While KubeVirt itself is installed they allow everything but what
// virt-controller, which does nothing then, would create.
func (a All) Handlers() map[string]http.Handler {
	named := func(ctx context.Context) instancetype.Lookup { return sizing.Lookup(ctx, a.VMIs, a.Kube) }
	all := Webhooks{Settings: a.Settings.Config, KubeVirts: a.Settings.KubeVirts, Lookup: named, Logger: a.Logger}.Handlers()
	all[EvictionPath] = new(gate).Limit(Evictions{
		Kube: a.Kube, VMIs: a.VMIs, Cached: a.Cached, Settings: a.Settings.Config, Logger: a.Logger,
	})
	all[MigrationPath] = new(gate).Limit(Migrations{Client: a.VMIs, Logger: a.Logger})
	all[UninstallPath] = new(gate).Limit(Uninstalls{
		Kube: a.Kube, Metadata: a.Metadata, Namespace: a.Namespace, Hold: a.Serving.Hold, Logger: a.Logger,
	})
	all = allowWhile(a.Settings.OtherInstallation, all)
	all[OwnedPath] = new(gate).Limit(Owned{Owners: a.VMIs, Lookup: named, Settings: a.Settings.Config, Logger: a.Logger, Launchers: a.Launchers, Bindings: a.Bindings})
	return a.Serving.AtSecretPaths(all)
}
