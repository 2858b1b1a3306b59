package supervisor

import (
	"context"
	"net"

	"github.com/podvisor/podvisor/internal/launcher/forward"
	"github.com/podvisor/podvisor/internal/transport"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/network"
)

// openPort connects to a port of the guest, by the way that the handler has put.
func (s *Supervisor) openPort(ctx context.Context, protocolOfPort string, port uint16) (net.Conn, error) {
	way := s.facts.way()
	if way == nil {
		return nil, transport.Refusal(protocol.ReasonMalformed, "no network interfaces are present: the pod has no way to the guest by the pod network and IPv4")
	}
	return forward.Dial(ctx, *way, protocolOfPort, port)
}

// way is how the pod reaches the guest. Nil: it does not.
func (f *facts) way() *network.Way {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.desired == nil {
		return nil
	}
	return network.WayOf(f.desired.Interfaces)
}
