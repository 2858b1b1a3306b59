package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"sync"
	"time"

	"github.com/podvisor/podvisor/internal/transport"
	"github.com/podvisor/podvisor/launcher/protocol"
)

// gate is a socket that QEMU connects to. Each connection is for one who waits for it.
type gate struct {
	listener net.Listener
	conns    chan net.Conn
	closed   chan struct{}
	close    func()
	asked    chan struct{} // closed when someone has waited for a connection
	ask      func()
}

// openGate listens on a socket. One that was left there is replaced.
func openGate(path string) (*gate, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen for QEMU: %w", err)
	}
	g := &gate{listener: l, conns: make(chan net.Conn), closed: make(chan struct{})}
	g.asked = make(chan struct{})
	g.ask = sync.OnceFunc(func() { close(g.asked) })
	g.close = sync.OnceFunc(func() {
		close(g.closed)
		_ = l.Close() // which removes the socket
	})
	go g.accept()
	return g, nil
}

func (g *gate) accept() {
	for {
		conn, err := g.listener.Accept()
		if err != nil {
			g.close()
			return
		}
		select {
		case g.conns <- conn:
		case <-g.closed:
			_ = conn.Close()
		}
	}
}

// next waits for the next connection, until the gate is closed.
func (g *gate) next(ctx context.Context) (net.Conn, error) {
	if g == nil {
		return nil, transport.Refusal(protocol.ReasonUnavailable, "the migration has not begun")
	}
	g.ask()
	select {
	case conn := <-g.conns:
		return conn, nil
	case <-g.closed:
		return nil, transport.Refusal(protocol.ReasonUnavailable, "the migration sends nothing more")
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// carriedTimeout is how long a migration waits for someone who carries its connections.
const carriedTimeout = 10 * time.Second

// carried waits until someone has waited for a connection. QEMU stands still while it connects to
// a disk that does not answer.
func (g *gate) carried(ctx context.Context) error {
	select {
	case <-g.asked:
		return nil
	case <-time.After(carriedTimeout):
		return fmt.Errorf("no handler takes the connections of QEMU within %s", carriedTimeout)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
