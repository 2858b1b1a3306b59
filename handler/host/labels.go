package host

import (
	"context"
	"errors"
	"log/slog"

	"github.com/podvisor/podvisor/internal/handler/capability"
	"github.com/podvisor/podvisor/internal/handler/node"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/config/live"
)

// Labels is by what the labels of the node about processors are known.
type Labels struct {
	// Processors is the file that says what processors guests can have on the node, as
	// supervisor.WriteProcessors of the launcher writes it. Required.
	Processors string
	// PodResources is the kubelet's socket that says which CPUs it gives to pods.
	// Required.
	PodResources string
	// KVM says that the node offers KVM to pods.
	KVM bool
	// Emulate says that guests run without hardware virtualization too.
	Emulate bool
	// Settings is the cluster's configuration. Required.
	Settings *live.Watcher
	// Logger takes a line if the file cannot be read. Nil: nothing is logged.
	Logger *slog.Logger
}

// Of returns the function for node.Config.Labels: what the labels are now, or nil as long
// as the configuration is not known. It is nil if the file cannot be read, now and until
// the process starts again: then the labels of the node stay as they are. The kubelet is
// asked at each call, within ctx.
func (l Labels) Of(ctx context.Context) (func() map[string]string, error) {
	if l.Processors == "" || l.PodResources == "" || l.Settings == nil {
		return nil, errors.New("the labels of a node need Processors, PodResources and Settings")
	}
	guests, err := node.ReadProcessors(l.Processors)
	if err != nil {
		if l.Logger != nil {
			l.Logger.Warn("the labels of the node about processors stay as they are", "err", err)
		}
		return nil, nil
	}
	return func() map[string]string {
		if !l.Settings.Known() {
			return nil
		}
		all := capability.ProcessorLabels(*guests, l.KVM, l.Emulate, l.Settings.Config())
		// Without an answer it is said of no node, and no VMI that needs it comes here.
		if ok, err := node.DedicatesCPUs(ctx, l.PodResources); ok && err == nil {
			all[vmi.CPUManagerLabel] = "true"
		}
		return all
	}, nil
}
