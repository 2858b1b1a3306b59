package fake

import (
	"errors"
	"io"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/internal/websocket"
	"github.com/podvisor/podvisor/vmi"
)

// Why verbs are refused.
var (
	errProbe   = errors.New("Pausing VMIs with a non-GuestAgentPing LivenessProbe is not supported") //nolint:staticcheck // clients match it
	errTimeout = errors.New("Unfreeze timeout in freeze request is not set")                         //nolint:staticcheck // clients match it
	errScreen  = errors.New("Active VNC connection. Request denied.")                                //nolint:staticcheck,revive // clients match it
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
func (s *Server) serveStream(w http.ResponseWriter, c *call, v verb) {
	s.mu.Lock()
	g, err := v.open(c)
	old, cuts := s.open(g.only), s.cuts
	s.mu.Unlock()
	switch {
	case err != nil:
		fail(w, err)
		return
	case !websocket.Asked(c.request):
		fail(w, apierrors.NewBadRequest("Bad Request"))
		return
	case old != nil && g.keep:
		fail(w, apierrors.NewInternalError(errScreen))
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

func console(c *call) (guest, error) {
	v, err := c.vmi()
	if err != nil {
		return guest{}, err
	}
	attached := v.Spec.Domain.Devices.AutoattachSerialConsole
	switch {
	case attached != nil && !*attached:
		err = &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusConflict, Reason: metav1.StatusReasonConflict, Message: "No serial consoles are present.",
		}}
	case v.Status.Phase == vmi.Failed:
		err = c.conflict(vmiKind, "VMI is in failed status")
	case v.Status.Phase != vmi.Running:
		err = apierrors.NewBadRequest("VMI is not running")
	}
	return guest{only: opened{c.namespace, c.name, "console"}}, err
}

// graphics is the VMI of the call, which runs and has a screen.
func (c *call) graphics() (*vmi.VirtualMachineInstance, error) {
	v, err := c.vmi()
	if err != nil {
		return nil, err
	}
	attached := v.Spec.Domain.Devices.AutoattachGraphicsDevice
	switch {
	case attached != nil && !*attached:
		err = apierrors.NewBadRequest("No graphics devices are present.")
	case v.Status.Phase != vmi.Running:
		err = apierrors.NewBadRequest("VMI is not running")
	}
	return v, err
}

func screen(c *call) (guest, error) {
	_, err := c.graphics()
	keep, _ := strconv.ParseBool(c.request.URL.Query().Get("preserveSession"))
	return guest{greeting: "RFB 003.008\n", only: opened{c.namespace, c.name, "vnc"}, keep: keep}, err
}

func forwardVM(c *call) (guest, error) {
	m, err := c.vm()
	if err != nil {
		return guest{}, err
	}
	if !m.Status.Created {
		return guest{}, c.conflict(vmKind, "VMI is not started")
	}
	return forwardVMI(c)
}

func forwardVMI(c *call) (guest, error) {
	v, err := c.vmi()
	if err != nil {
		return guest{}, err
	}
	g, port, protocol := guest{framing: websocket.Bytes}, "", "tcp"
	if len(c.rest) > 0 {
		port = c.rest[0]
	}
	if len(c.rest) > 1 {
		protocol = c.rest[1]
	}
	n, _ := strconv.ParseUint(port, 10, 16)
	switch {
	case v.Status.Condition(vmi.ConditionPaused) != nil:
		err = c.conflict(vmiKind, "VMI is paused")
	case len(v.Status.Interfaces) == 0:
		err = apierrors.NewBadRequest("no network interfaces are present")
	case n == 0:
		err = apierrors.NewBadRequest(strconv.Quote(port) + " is no port from 1 to 65535")
	case protocol == "udp":
		g.framing = websocket.Datagrams
	case protocol != "tcp":
		err = apierrors.NewBadRequest(strconv.Quote(protocol) + " is neither tcp nor udp")
	}
	return g, err
}
