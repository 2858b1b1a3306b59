package libvirt

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

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
	d := &dialer{ctx: ctx, socket: socket, greeted: make(chan struct{})}
	c := &Connection{rpc: golibvirt.NewWithDialer(d), socket: d, calls: make(chan struct{}, atOnce)}
	greet := func() error {
		defer close(d.greeted)
		return c.rpc.ConnectToURI(golibvirt.QEMUSession)
	}
	if err := c.do(ctx, greet); err != nil {
		return nil, errors.Join(fmt.Errorf("connect to libvirt at %s: %w", socket, err), d.close())
	}
	return c, nil
}

// dialer connects once, while ctx lasts.
type dialer struct {
	ctx    context.Context
	socket string
	// greeted is closed when the library has made its session or has failed to.
	greeted chan struct{}

	mu   sync.Mutex
	conn net.Conn
}

// greetingEnds is how long the end of a connection is held back while the library makes
// its session.
const greetingEnds = 500 * time.Millisecond

// held is a connection whose end the library sees after it has made its session. Of an
// end between the daemon's last answer and that moment the library takes no note: the
// session would be one that is never lost. An end that comes earlier is seen when
// greetingEnds is over.
type held struct {
	net.Conn
	greeted <-chan struct{}
}

func (c held) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil {
		select {
		case <-c.greeted:
		case <-time.After(greetingEnds):
		}
	}
	return n, err
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
	return held{conn, d.greeted}, nil
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
	if _, err := wait(ctx, c, c.rpc.ConnectGetLibVersion); err != nil {
		return fmt.Errorf("ask libvirt for an answer: %w", err)
	}
	return nil
}

// wait runs call and returns its result, or the error of ctx if that ends first. Then
// call goes on, until the daemon answers or is gone. Beside [atOnce] calls that go on
// no other is begun.
//
// The result is that of call until it is handed over: call writes nothing that its
// caller reads, since its caller may be gone.
func wait[T any](ctx context.Context, c *Connection, call func() (T, error)) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	select {
	case c.calls <- struct{}{}:
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := call()
		<-c.calls
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
}

// do is wait for a call without a result.
func (c *Connection) do(ctx context.Context, call func() error) error {
	_, err := wait(ctx, c, func() (struct{}, error) { return struct{}{}, call() })
	return err
}

// of is the result of a call about the domain of this name. The call is made as by
// wait.
func of[T any](ctx context.Context, c *Connection, op, name string, call func(golibvirt.Domain) (T, error)) (T, error) {
	value, err := wait(ctx, c, func() (T, error) {
		d, err := c.rpc.DomainLookupByName(name)
		if err != nil {
			var none T
			return none, err
		}
		return call(d)
	})
	return value, failure(op, name, err)
}

// with is of for a call without a result.
func (c *Connection) with(ctx context.Context, op, name string, do func(golibvirt.Domain) error) error {
	_, err := of(ctx, c, op, name, func(d golibvirt.Domain) (struct{}, error) { return struct{}{}, do(d) })
	return err
}
