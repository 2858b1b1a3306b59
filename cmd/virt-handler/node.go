package main

import (
	"os"

	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/podvisor/podvisor/handler/device"
	"github.com/podvisor/podvisor/handler/node"
	"github.com/podvisor/podvisor/internal/ops"
)

// parts are what the handler puts on its node, and what finds out when it is to be
// removed from there.
type parts struct {
	removal   *node.Removal
	plugins   *device.Plugins
	heartbeat *node.Heartbeat
}

func newParts(s *ops.Setup, nodes corev1.NodeInterface, name string, d device.Config) (p parts, err error) {
	changed := func() { p.heartbeat.Changed() }
	p.removal, err = node.NewRemoval(node.RemovalConfig{
		Metadata: s.Metadata, Namespace: os.Getenv("POD_NAMESPACE"), DaemonSet: "virt-handler", Changed: changed, Logger: s.Log,
	})
	if err != nil {
		return p, err
	}
	d.Changed, d.Uninstalled = changed, p.removal.Uninstalled
	p.plugins = device.New(d)
	p.heartbeat = node.New(node.Config{
		Nodes: nodes, Name: name, Schedulable: func() bool { return p.plugins.Registered(device.Tun) },
		Leaving: p.removal.Begun, Uninstalled: p.removal.Uninstalled, Logger: s.Log,
	})
	return p, nil
}
