package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"unicode"

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

// maxText is how many bytes of a launcher's text get into an error.
const maxText = 1 << 10

// text is a launcher's text as it gets into an error. What a terminal would not print
// as it is becomes a space.
func text(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsGraphic(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s[:min(len(s), maxText)], ""))
}

// limited is an error whose text a launcher may have chosen: JSON errors quote what
// cannot be read.
type limited struct{ error }

func (l limited) Error() string { return text(l.error.Error()) }
func (l limited) Unwrap() error { return l.error }

// refusal is the error that a response stands for. Of one that switches protocols
// nothing is read: what follows it is the other protocol, and may have no end.
func refusal(resp *http.Response) *Error {
	e := &Error{Status: resp.StatusCode}
	if resp.StatusCode < 200 {
		return e
	}
	// Without a finding the status says enough.
	_ = json.NewDecoder(io.LimitReader(resp.Body, 64<<10)).Decode(&e.Finding)
	e.Reason, e.Message = text(e.Reason), text(e.Message)
	return e
}

// unknown gives an error for a path that a launcher does not have the reason that
// a launcher which has the path gives for a name that it does not know.
func unknown(err error, what string) error {
	if e := (*Error)(nil); errors.As(err, &e) && e.Status == http.StatusNotFound && e.Reason == "" {
		e.Finding = vmi.Finding{Reason: protocol.ReasonUnknown, Message: "the launcher does not know the " + what + ": it is of an older release"}
	}
	return err
}
