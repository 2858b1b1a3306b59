package transport_test

import (
	"context"
	"fmt"
	"net"
	"net/http"

	"github.com/podvisor/podvisor/internal/transport"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

func ExampleClient() {
	near, far := net.Pipe()
	go func() {
		l := &once{conn: far}
		_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { //nolint:gosec // it ends with the example
			transport.Refuse(w, transport.Refusal(protocol.ReasonNoAgent, "the guest has no agent"))
		}))
	}()
	c := transport.NewClient(transport.Config{
		Dial:    func(context.Context) (net.Conn, error) { return near, nil },
		Host:    "launcher",
		Refused: func(status int, f vmi.Finding) error { return fmt.Errorf("%d %s: %s", status, f.Reason, f.Message) },
	})
	fmt.Println(c.Call(context.Background(), protocol.Path{Call: protocol.CallFreeze}, nil, nil))
	// Output: 409 NoAgent: the guest has no agent
}

// once is a listener with one connection.
type once struct{ conn net.Conn }

func (o *once) Accept() (net.Conn, error) {
	c := o.conn
	if c == nil {
		return nil, net.ErrClosed
	}
	o.conn = nil
	return c, nil
}

func (*once) Close() error   { return nil }
func (*once) Addr() net.Addr { return &net.UnixAddr{Name: "launcher"} }
