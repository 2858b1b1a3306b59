package control

import (
	"context"
	"fmt"
	"net"

	"github.com/podvisor/podvisor/internal/transport"
	"github.com/podvisor/podvisor/launcher/protocol"
)

const (
	// mostStreams is how many streams a server has open at once, without those of migrations.
	mostStreams = 32
	// mostMoving is how many streams of migrations it has open at once.
	mostMoving = 16
)

// Stream opens a stream. ctx bounds the opening and not the stream, which the
// caller closes. A refusal is an [*Error]; its reason is [protocol.ReasonUnknown]
// for a stream that the launcher does not know, and [protocol.ReasonUnavailable]
// for one that is not there now. Use [Client.Namespace] for
// [protocol.StreamNetworkNamespace].
//
// How long a stream of a migration takes to open is bounded by ctx alone: it may wait for
// QEMU to connect.
//
// What arrives is a tenant's: raw bytes, at any rate, until either side ends.
func (c *Client) Stream(ctx context.Context, name protocol.Stream) (net.Conn, error) {
	p := protocol.Path{Stream: name}
	conn, err := c.of(p).Stream(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("open the stream %s: %w", name, unknown(err, "stream "+string(name)))
	}
	return conn, nil
}

// enter takes a place for a stream.
func (s *Server) enter(p protocol.Path) (leave func(), err error) {
	places := s.places
	if p.IsMigration() {
		places = s.moving
	}
	select {
	case places <- struct{}{}:
		return func() { <-places }, nil
	default:
		return nil, transport.Refusal(protocol.ReasonBusy, "%d streams are open: close one of them", cap(places))
	}
}

// open opens the inner end of a stream.
func (s *Server) open(ctx context.Context, p protocol.Path) (net.Conn, error) {
	if network, port, is := p.Stream.Port(); is && s.config.Port != nil {
		return s.config.Port(ctx, network, port)
	}
	open := s.config.Streams[p.Stream]
	if open == nil {
		return nil, transport.Refusal(protocol.ReasonUnknown, "this launcher has no stream %q", p.Stream)
	}
	return open(ctx)
}
