package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"

	"github.com/podvisor/podvisor/launcher/control"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// Stream opens a stream of a launcher, also while the VMI is being deleted. ctx
// bounds the opening. Every error is a [*vmi.Refusal]: of the launcher with its reason,
// protocol.ReasonNotFound of a VMI or a pod that this handler does not handle, and
// protocol.ReasonUnavailable of a launcher that does not answer. It may be called from
// any goroutine and waits for no other VMI. A stream that hands over descriptors is
// known to no caller of this.
func (c *Controller) Stream(ctx context.Context, of protocol.Target, stream protocol.Stream) (net.Conn, error) {
	key := of.Key()
	_, s := c.handled(of)
	migrates := protocol.Path{Stream: stream}.IsMigration()
	if s == nil || stream == protocol.StreamNetworkNamespace || migrates && !c.isAccepted(of, "") {
		return nil, c.refused(fmt.Sprintf("open the stream %s of VMI %s", stream, key), s, migrates || stream == protocol.StreamNetworkNamespace, nil)
	}
	conn, err := s.client.Stream(ctx, stream)
	if err != nil {
		return nil, c.refused(fmt.Sprintf("open the stream %s of VMI %s", stream, key), s, false, err)
	}
	return conn, nil
}

// Call makes a call to a launcher and returns its answer as JSON, or nil.
// Options are JSON or nil. Its errors are as those of [Controller.Stream]; a VMI that is
// being deleted is Unavailable. How long it takes is bounded by ctx alone. The calls of a
// migration that a handler answers are among them.
func (c *Controller) Call(ctx context.Context, of protocol.Target, call protocol.Call, options json.RawMessage) (json.RawMessage, error) {
	what := fmt.Sprintf("%s VMI %s", call, of.Key())
	if call == protocol.CallDestroy {
		return nil, &vmi.Refusal{Finding: vmi.Finding{Reason: protocol.ReasonUnknown, Message: what + ": it is no call of users"}}
	}
	if (protocol.Path{Call: call}).IsMigration() {
		return c.callMigration(ctx, of, call, options)
	}
	s, err := c.callable(of)
	if err != nil {
		return nil, c.refused(what, s, false, err)
	}
	var body any // a nil message is not JSON
	if len(options) > 0 {
		body = options
	}
	var answer json.RawMessage
	if err := s.client.Call(ctx, call, body, &answer); err != nil {
		return nil, c.refused(what, s, false, err)
	}
	s.log.Info("called the launcher", "call", call)
	if len(answer) == 0 {
		return nil, nil
	}
	if answer, err = protocol.SanitizeAnswer(answer); err != nil {
		return nil, c.refused(what, s, false, err)
	}
	return answer, nil
}

// refused is the refusal that an error stands for. Without a session the VMI is not here.
func (c *Controller) refused(what string, s *session, unknown bool, err error) *vmi.Refusal {
	f := vmi.Finding{Reason: protocol.ReasonUnavailable}
	own := (*vmi.Refusal)(nil)
	switch said := (*control.Error)(nil); {
	case errors.As(err, &said):
		f = said.Finding
		if f.Message == "" {
			f.Message = said.Error()
		}
	case errors.As(err, &own):
		f = own.Finding
	case errors.Is(err, ErrStopping):
		f.Message = ErrStopping.Error()
	case s == nil:
		f.Reason, f.Message = protocol.ReasonNotFound, fmt.Sprintf("%s: %v %s: it has ended, moved, or is not handed over yet", what, ErrNotHere, c.config.Node)
		return &vmi.Refusal{Finding: protocol.SanitizeFinding(f)}
	case unknown:
		f.Reason, f.Message = protocol.ReasonUnknown, "it is no stream of users"
	default:
		f.Message = fmt.Sprintf("its launcher does not answer: %v", err)
	}
	f.Message = what + ": " + f.Message
	return &vmi.Refusal{Finding: protocol.SanitizeFinding(f)}
}
