package libvirt

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	golibvirt "github.com/digitalocean/go-libvirt"
)

// Connection is a connection to a daemon in session mode. Its methods may be
// called from any goroutine.
type Connection struct{ rpc *golibvirt.Libvirt }

// Dial connects to the daemon that listens on socket. It returns when the
// daemon has answered, which it does as soon as it has started completely.
func Dial(ctx context.Context, socket string) (*Connection, error) {
	d := &dialer{ctx: ctx, socket: socket}
	c := &Connection{rpc: golibvirt.NewWithDialer(d)}
	err := wait(ctx, func() error { return c.rpc.ConnectToURI(golibvirt.QEMUSession) })
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect to libvirt at %s: %w", socket, err), d.close())
	}
	return c, nil
}

// dialer connects once, while ctx lasts.
type dialer struct {
	ctx    context.Context
	socket string

	mu   sync.Mutex
	conn net.Conn
}

// close closes a connection that did not become a session.
func (d *dialer) close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conn == nil {
		return nil
	}
	return d.conn.Close()
}

// Dial implements the library's interface.
func (d *dialer) Dial() (net.Conn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	conn, err := (&net.Dialer{}).DialContext(d.ctx, "unix", d.socket)
	if err != nil {
		return nil, err
	}
	d.conn = conn
	return conn, nil
}

// Close ends the connection. The daemon continues with the calls that it got.
func (c *Connection) Close() error { return c.rpc.Disconnect() }

// Lost is closed when the daemon is gone or the connection was closed.
func (c *Connection) Lost() <-chan struct{} { return c.rpc.Disconnected() }

// wait runs call and returns its error, or that of ctx if it ends first. Then
// call goes on, until the daemon answers or is gone.
func wait(ctx context.Context, call func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- call() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
