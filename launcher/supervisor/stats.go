package supervisor

import (
	"context"

	"github.com/podvisor/podvisor/internal/launcher/libvirt"
	"github.com/podvisor/podvisor/launcher/protocol"
)

// stats are what libvirt counts of the domain now.
func (s *Supervisor) stats(ctx context.Context) (out protocol.Stats, err error) {
	err = s.withGuest(ctx, func(ctx context.Context, c *libvirt.Connection) error {
		counted, err := c.Counted(ctx, s.domainName(), protocol.StatGroups()...)
		out = protocol.NewStats(counted)
		return err
	})
	return out, err
}
