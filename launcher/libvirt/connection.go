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
type Connection struct {
	rpc    *golibvirt.Libvirt
	socket *dialer
	// calls has a place for each call that the daemon is asked and has not
	// answered.
	calls chan struct{}
}

// atOnce is how many calls the daemon works on at once for one client. More would
// wait there, also after nothing here waits for them.
const atOnce = 5

// Dial connects to the daemon that listens on socket. It returns when the
// daemon has answered, which it does as soon as it has started completely.
func Dial(ctx context.Context, socket string) (*Connection, error) {
	d := &dialer{ctx: ctx, socket: socket}
	c := &Connection{rpc: golibvirt.NewWithDialer(d), socket: d, calls: make(chan struct{}, atOnce)}
	err := c.wait(ctx, func() error { return c.rpc.ConnectToURI(golibvirt.QEMUSession) })
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
	if err := d.conn.Close(); !errors.Is(err, net.ErrClosed) { // the library closes it when the daemon does
		return err
	}
	return nil
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
//
// It closes the socket, which the daemon takes for the end. go-libvirt's Disconnect
// asks the daemon first and waits for the answer for as long as a daemon hangs.
func (c *Connection) Close() error { return c.socket.close() }

// Lost is closed when the daemon is gone or the connection was closed.
func (c *Connection) Lost() <-chan struct{} { return c.rpc.Disconnected() }

// Ping returns when the daemon has answered. It waits for no domain, whatever the
// daemon does with one.
func (c *Connection) Ping(ctx context.Context) error {
	err := c.wait(ctx, func() error {
		_, err := c.rpc.ConnectGetLibVersion()
		return err
	})
	if err != nil {
		return fmt.Errorf("ask libvirt for an answer: %w", err)
	}
	return nil
}

// wait runs call and returns its error, or that of ctx if it ends first. Then
// call goes on, until the daemon answers or is gone. Beside [atOnce] calls that go on
// no other is begun.
func (c *Connection) wait(ctx context.Context, call func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case c.calls <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	done := make(chan error, 1)
	go func() {
		err := call()
		<-c.calls
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
