package main

import (
	"context"
	"flag"
	"log/slog"
	"os"
	"slices"

	"github.com/podvisor/podvisor/handler"
	"github.com/podvisor/podvisor/handler/device"
	"github.com/podvisor/podvisor/handler/node"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/config/live"
)

// labelling is by what the labels of the node about processors are known.
type labelling struct {
	processors, resources string
	emulate               bool
}

// labelFlags are flags of which those about labels are defined.
func labelFlags() (*flag.FlagSet, *labelling) {
	flags, l := &flag.FlagSet{}, &labelling{}
	flags.StringVar(&l.processors, "processors", "/var/run/kubevirt-node/processors.json", "file that says what processors guests can have on this node, as virt-launcher processors writes it; without it the node's labels stay as they are")
	flags.StringVar(&l.resources, "pod-resources", "/var/lib/kubelet/pod-resources/kubelet.sock", "the kubelet's socket that says which CPUs it gives to pods")
	flags.BoolVar(&l.emulate, "allow-emulation", os.Getenv("ALLOW_EMULATION") == "true", "guests run without hardware virtualization, as they do for virt-controller (ALLOW_EMULATION)")
	return flags, l
}

// labels returns the labels of a node that offers these devices, or nil as long as they
// are not known.
func (l *labelling) labels(ctx context.Context, offer []device.Device, settings *live.Watcher, log *slog.Logger) func() map[string]string {
	guests, err := node.ReadProcessors(l.processors)
	if err != nil {
		log.Warn("the labels of the node about processors stay as they are", "err", err)
		return nil
	}
	hasKVM := slices.ContainsFunc(offer, func(d device.Device) bool { return d.Name == device.KVM })
	return func() map[string]string {
		if !settings.Known() {
			return nil
		}
		all := handler.ProcessorLabels(*guests, hasKVM, l.emulate, settings.Config())
		// Without an answer it is said of no node, and no VMI that needs it comes here.
		if ok, err := node.DedicatesCPUs(ctx, l.resources); ok && err == nil {
			all[vmi.CPUManagerLabel] = "true"
		}
		return all
	}
}
