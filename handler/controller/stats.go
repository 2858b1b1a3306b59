package controller

import (
	"context"
	"fmt"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// Instances are the VMIs of the node whose guests run, in no order. They must not be
// changed. It may be called from any goroutine.
func (c *Controller) Instances() []*vmi.VirtualMachineInstance {
	var out []*vmi.VirtualMachineInstance
	for _, key := range c.instances.GetIndexer().ListKeys() {
		if v, s := c.handled(key, ""); s != nil && v.Status.Phase == vmi.Running {
			out = append(out, v)
		}
	}
	return out
}

// Stats asks the launcher of a VMI what it has counted, and returns that sanitized. It
// returns when ctx ends. It may be called from any goroutine and waits for no other VMI.
func (c *Controller) Stats(ctx context.Context, of protocol.Target) (protocol.Stats, error) {
	key := of.Namespace + "/" + of.Name
	_, s := c.handled(key, of.UID)
	if s == nil {
		return protocol.Stats{}, fmt.Errorf("count what VMI %s uses: %w", key, ErrNotHere)
	}
	stats, err := s.client.Stats(ctx)
	if err != nil {
		return protocol.Stats{}, fmt.Errorf("count what VMI %s uses: %w", key, err)
	}
	return stats.Sanitized(), nil
}
