package stream

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"slices"

	"github.com/podvisor/podvisor/internal/transport"
	"github.com/podvisor/podvisor/launcher/protocol"
)

// Peer is where the handler of a node listens, and what it is known by.
type Peer struct {
	// Certificate is the hash of the certificate that it presents: [Certificate.Hash].
	Certificate string
	// Address is an address and a port.
	Address string
}

// PeerClient makes the calls and opens the streams of migrations at the handler of another
// node. It keeps no connection, so it needs no closing. Its methods may be called from any
// goroutine.
type PeerClient struct{ client *transport.Client }

// Client is a client of the handler of another node, which is shown this certificate. It
// accepts no other certificate than that of the peer.
func (c Certificate) Client(of Peer) *PeerClient {
	config := pinned(of.Certificate)
	config.Certificates = []tls.Certificate{c.tls}
	config.DynamicRecordSizingDisabled = true // nothing waits for the first bytes of a record
	d := tls.Dialer{Config: config}
	return &PeerClient{transport.NewClient(transport.Config{
		Dial: func(ctx context.Context) (net.Conn, error) { return d.DialContext(ctx, "tcp", of.Address) },
		Host: of.Address, MaxAnswer: protocol.MaxMigration, Refused: refused,
	})}
}

// Call makes a call of the migration that the path names, and returns when it is done: see
// [Dialer.Call] for options and answer. What the peer or its launcher refuses is a
// [*vmi.Refusal] with their reason; another error says that there is no answer. How long it
// takes is bounded by ctx alone.
func (c *PeerClient) Call(ctx context.Context, p protocol.Path, options, answer any) error {
	return c.client.Call(ctx, p, options, answer)
}

// Stream opens a stream of the migration that the path names. ctx bounds the opening and not
// the stream, which the caller closes. Errors are as those of [PeerClient.Call].
func (c *PeerClient) Stream(ctx context.Context, p protocol.Path) (net.Conn, error) {
	return c.client.Stream(ctx, p)
}

// What handlers ask each other for, and what virt-controller asks for about migrations. The
// other calls and streams of migrations are those of a handler and its own launchers.
var (
	peerCalls       = []protocol.Call{protocol.CallMigrationPrepare, protocol.CallMigrationFinish}
	peerStreams     = []protocol.Stream{protocol.StreamMigrationMemory, protocol.StreamMigrationDisks}
	controllerCalls = []protocol.Call{
		protocol.CallMigrationAnnounce, protocol.CallMigrationAccept, protocol.CallMigrationStart, protocol.CallMigrationAbort,
	}
)

// admitsPeer says whether the request is one of a handler that was accepted for it.
func (s *Server) admitsPeer(r *http.Request, p protocol.Path) bool {
	if s.config.Peer == nil || r.TLS == nil || len(r.TLS.PeerCertificates) != 1 || p.Target.UID == "" || p.Target.Pod == "" {
		return false
	}
	asks := slices.Contains(peerCalls, p.Call) || slices.Contains(peerStreams, p.Stream)
	return asks && s.config.Peer(p, hash(r.TLS.PeerCertificates[0].Raw))
}
