package main

import (
	"flag"
	"os"

	"github.com/podvisor/podvisor/handler/host"
)

// labelFlags defines the flags about the labels of the node.
func labelFlags(f *flag.FlagSet) *host.Labels {
	var l host.Labels
	f.StringVar(&l.Processors, "processors", "/var/run/kubevirt-node/processors.json",
		"file that says what processors guests can have on this node, as virt-launcher processors writes it; without it the node's labels stay as they are")
	f.StringVar(&l.PodResources, "pod-resources", "/var/lib/kubelet/pod-resources/kubelet.sock", "the kubelet's socket that says which CPUs it gives to pods")
	f.BoolVar(&l.Emulate, "allow-emulation", os.Getenv("ALLOW_EMULATION") == "true", "guests run without hardware virtualization, as they do for virt-controller (ALLOW_EMULATION)")
	return &l
}
