package controller

import (
	"context"
	"fmt"
	"strings"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// Instances are the VMIs of the node whose guests run, in no order. They must not be
// changed. It may be called from any goroutine.
func (c *Controller) Instances() []*vmi.VirtualMachineInstance {
	var out []*vmi.VirtualMachineInstance
	for _, key := range c.instances.GetIndexer().ListKeys() {
		namespace, name, _ := strings.Cut(key, "/")
		if v, s := c.handled(protocol.Target{Namespace: namespace, Name: name}); s != nil && v.Status.Phase == vmi.PhaseRunning {
			out = append(out, v)
		}
	}
	return out
}

// Stats asks the launcher of a VMI what it has counted, and returns that sanitized. It
// returns when ctx ends. It may be called from any goroutine and waits for no other VMI.
func (c *Controller) Stats(ctx context.Context, of protocol.Target) (protocol.Stats, error) {
	_, s := c.handled(of)
	if s == nil {
		return protocol.Stats{}, fmt.Errorf("count what VMI %s uses: %w", of.Key(), ErrNotHere)
	}
	var stats protocol.Stats
	err := guarded(func() error {
		said, err := s.client.Stats(ctx)
		stats = said.Sanitized()
		return err
	})
	if err != nil {
		return protocol.Stats{}, fmt.Errorf("count what VMI %s uses: %w", of.Key(), err)
	}
	return stats, nil
}
