package supervisor

import (
	"context"
	"fmt"
	"net"
	"sync"

	"github.com/podvisor/podvisor/internal/launcher/console"
	"github.com/podvisor/podvisor/internal/transport"
	"github.com/podvisor/podvisor/launcher/domain"
	"github.com/podvisor/podvisor/launcher/protocol"
)

// screens are the connections to the guest's screen, of which there is one at a time.
type screens struct {
	mu   sync.Mutex
	last *screen
}

// screen is a connection to the guest's screen.
type screen struct {
	net.Conn
	of *screens
}

// Close implements net.Conn.
func (c *screen) Close() error {
	c.of.mu.Lock()
	if c.of.last == c {
		c.of.last = nil
	}
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// openScreen connects to the guest's screen and ends the connection before.
func (s *Supervisor) openScreen(ctx context.Context) (net.Conn, error) {
	s.screens.mu.Lock()
	defer s.screens.mu.Unlock()
	return s.connectScreen(ctx)
}

// openScreenIfFree connects to the guest's screen if there is no connection.
func (s *Supervisor) openScreenIfFree(ctx context.Context) (net.Conn, error) {
	s.screens.mu.Lock()
	defer s.screens.mu.Unlock()
	if s.screens.last != nil {
		return nil, transport.Refusal(protocol.ReasonBusy, "the screen of the guest is in use: connect without preserving the session to end the other")
	}
	return s.connectScreen(ctx)
}

// connectScreen makes a new connection the only one. The lock of screens is held, so that
// of two clients that ask at once for a free screen one has it.
func (s *Supervisor) connectScreen(ctx context.Context) (net.Conn, error) {
	conn, err := console.Connect(ctx, domain.VNCSocket(s.privateDir()))
	if err != nil {
		return nil, fmt.Errorf("open the screen: %w", err)
	}
	if before := s.screens.last; before != nil {
		_ = before.Conn.Close() // fails if its owner has closed it
	}
	s.screens.last = &screen{Conn: conn, of: &s.screens}
	return s.screens.last, nil
}
