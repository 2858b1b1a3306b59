package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/internal/websocket"
)

// maxRefusal is how much of an answer that is no Status is in an error, in bytes.
const maxRefusal = 512

// Dial connects to a port of a guest, as a stream with the rules of the package's comment.
// The network is tcp or udp. The address is a port,
// behind a colon, with any host before it that does not count: "web:80" and ":80" are the
// same. A connection of udp carries a datagram in each Write, and one in each Read. The
// context counts until Dial returns.
//
// It has the type of the field DialContext of http.Transport.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// PortForward connects to the ports of the VM's guest, see [Dial]. It asks for nothing
// before a connection is made.
func (c VirtualMachines) PortForward(name string) Dial { return c.forward(name) }

// PortForward connects to the ports of the guest, see [Dial]. It asks for nothing before
// a connection is made.
func (c VirtualMachineInstances) PortForward(name string) Dial { return c.forward(name) }

// Console opens the guest's serial port, as a stream with the rules of the package's
// comment. Who has it open loses it to the one who opens it next.
func (c VirtualMachineInstances) Console(ctx context.Context, name string) (net.Conn, error) {
	return c.stream(ctx, streamOf{verb: []string{"console"}}, name)
}

// VNC opens the guest's screen, of the protocol RFB. The server is the first to send.
func (c VirtualMachineInstances) VNC(ctx context.Context, name string, opts VNCOptions) (net.Conn, error) {
	s := streamOf{verb: []string{"vnc"}}
	if opts.Preserve {
		s.param, s.value = "preserveSession", "true"
	}
	return c.stream(ctx, s, name)
}

func (v verbs) forward(name string) Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		framing, ok := map[string]websocket.Framing{"tcp": websocket.Bytes, "udp": websocket.Datagrams}[network]
		if !ok {
			return nil, fmt.Errorf("forward to %s %s/%s: the network %q is neither tcp nor udp", v.of.Kind, v.within, name, network)
		}
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, fmt.Errorf("forward to %s %s/%s: %w", v.of.Kind, v.within, name, err)
		}
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, fmt.Errorf("forward to %s %s/%s: %q is no port from 1 to 65535", v.of.Kind, v.within, name, port)
		}
		return v.stream(ctx, streamOf{verb: []string{"portforward", port, network}, framing: framing}, name)
	}
}

// streamOf says which stream is meant.
type streamOf struct {
	verb         []string
	param, value string
	framing      websocket.Framing
}

// stream opens a stream.
func (v verbs) stream(ctx context.Context, s streamOf, name string) (net.Conn, error) {
	r, err := v.request(v.client.subresources.Get(), name, s.verb...)
	if err != nil {
		return nil, err
	}
	if s.param != "" {
		r = r.Param(s.param, s.value)
	}
	what := fmt.Sprintf("open %s of %s %s/%s", strings.Join(s.verb, "/"), v.of.Kind, v.within, name)
	if l := v.client.subresources.GetRateLimiter(); l != nil {
		if err := l.Wait(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
	}
	// Not by the client, whose limit of time would end the stream.
	transport := v.client.http.Transport
	if transport == nil {
		transport = http.DefaultTransport
	}
	c, err := websocket.Dial(ctx, transport, r.URL(), s.framing)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, v.status(err, name))
	}
	return c, nil
}

// status makes an error of the API of an answer that refuses a stream.
func (v verbs) status(err error, name string) error {
	var refused *websocket.Refused
	if !errors.As(err, &refused) {
		return err
	}
	var s metav1.Status
	if json.Unmarshal(refused.Body, &s) == nil && s.Kind == "Status" && s.Status != metav1.StatusSuccess {
		s.Code = cmp.Or(s.Code, int32(refused.Status)) //nolint:gosec // an HTTP status has three digits
		return &apierrors.StatusError{ErrStatus: s}
	}
	after, _ := strconv.Atoi(refused.Header.Get("Retry-After"))
	out := apierrors.NewGenericServerResponse(refused.Status, http.MethodGet, v.of.Resource().GroupResource(), name, "", after, true)
	text := strings.TrimSpace(string(refused.Body[:min(len(refused.Body), maxRefusal)]))
	if text == "" {
		return out
	}
	return fmt.Errorf("%w: %q", out, text)
}
