package fake

import (
	"io"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/podvisor/podvisor/internal/vmi/verb"
	"github.com/podvisor/podvisor/internal/websocket"
	"github.com/podvisor/podvisor/vmi"
)

// opened says what an open stream is of. Only one may be open that is not "".
type opened struct {
	namespace, name, verb string
}

// guest is how the guest at the other end of a stream behaves: it sends a greeting, then
// what it gets.
type guest struct {
	framing  websocket.Framing
	greeting string
	// only is the stream that may be open once, and keep that one that is open stays.
	only opened
	keep bool
}

// serveStream answers a call that opens a stream.
func (s *Server) serveStream(w http.ResponseWriter, c *call, of verb.Stream) {
	s.mu.Lock()
	g, err := c.guest(of)
	old, cuts := s.open(g.only), s.cuts
	s.mu.Unlock()
	switch {
	case err != nil:
		fail(w, err)
		return
	case !websocket.Asked(c.request):
		fail(w, c.verb.NoWebsocket())
		return
	case old != nil && g.keep:
		fail(w, c.verb.Refused(c.VMI, &vmi.Refusal{Finding: vmi.Finding{Reason: vmi.RefusedBusy, Message: "another client has it"}}))
		return
	case old != nil:
		old.Cut()
	}
	stream, err := websocket.Accept(w, c.request, websocket.Options{Framing: g.framing})
	if err != nil {
		fail(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	s.mu.Lock()
	cut := s.cuts != cuts
	if !cut {
		s.streams[stream] = g.only
	}
	s.mu.Unlock()
	if cut {
		stream.Cut()
		return
	}
	echo(stream, g.greeting)
	s.mu.Lock()
	delete(s.streams, stream)
	s.mu.Unlock()
	_ = stream.Close()
}

// open is the open stream, or nil.
func (s *Server) open(o opened) *websocket.Conn {
	for c, is := range s.streams {
		if o != (opened{}) && is == o {
			return c
		}
	}
	return nil
}

// echo sends the greeting and then what comes, until the stream ends.
func echo(stream io.ReadWriter, greeting string) {
	b := make([]byte, 64<<10)
	n := copy(b, greeting)
	for first := true; ; first = false {
		if !first || n > 0 {
			if _, err := stream.Write(b[:n]); err != nil {
				return
			}
		}
		var err error
		if n, err = stream.Read(b); err != nil {
			return
		}
	}
}

// guest is the guest's end of the stream.
func (c *call) guest(of verb.Stream) (guest, error) {
	only := opened{c.Namespace, c.Name, c.verb.Subresource}
	switch {
	case of.Name == verb.Console:
		return guest{only: only}, nil
	case of.Name != "":
		return guest{greeting: "RFB 003.008\n", only: only, keep: of.Name == verb.ScreenIfFree}, nil
	case len(c.VMI.Status.Interfaces) == 0:
		return guest{}, apierrors.NewBadRequest("no network interfaces are present")
	case of.Network == verb.UDP:
		return guest{framing: websocket.Datagrams}, nil
	}
	return guest{framing: websocket.Bytes}, nil
}
