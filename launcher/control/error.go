package control

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// Error is a launcher's refusal of a request. It is [vmi.ErrInvalid] if the same
// request will be refused again whatever happens, which a stale Desired is not: it
// is in order with another generation.
type Error struct {
	// Status is the code of the HTTP response.
	Status int
	// Finding is why. Its Reason is one of launcher/protocol, or empty if the
	// answer has none.
	vmi.Finding
}

// passing are the reasons of refusals after which the same request may be granted.
var passing = []string{protocol.ReasonStale, protocol.ReasonBusy, protocol.ReasonNoAgent}

// Error is the launcher's message.
func (e *Error) Error() string {
	if e.Message == "" {
		return fmt.Sprintf("the launcher answers %d %s", e.Status, http.StatusText(e.Status))
	}
	return e.Message
}

// Is makes a refusal that is final a [vmi.ErrInvalid].
func (e *Error) Is(target error) bool {
	return target == vmi.ErrInvalid && e.Status >= 400 && e.Status < 500 && !slices.Contains(passing, e.Reason)
}

// asked is the error of a request: the launcher's refusal, or why there is no answer.
func asked(err error) error {
	if e := (*Error)(nil); err == nil || errors.As(err, &e) {
		return err
	}
	return fmt.Errorf("ask the launcher: %w", err)
}

// unknown gives an error for a path that a launcher does not have the reason that
// a launcher which has the path gives for a name that it does not know.
func unknown(err error, what string) error {
	if e := (*Error)(nil); errors.As(err, &e) && e.Status == http.StatusNotFound && e.Reason == "" {
		e.Finding = vmi.Finding{Reason: protocol.ReasonUnknown, Message: "the launcher does not know the " + what + ": it is of an older release"}
	}
	return err
}
