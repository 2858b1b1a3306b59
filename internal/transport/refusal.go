package transport

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// statuses are the codes of refusals by their reason. Others have 503.
var statuses = map[string]int{
	protocol.ReasonNotFound: http.StatusNotFound, protocol.ReasonUnknown: http.StatusNotFound,
	protocol.ReasonBusy: http.StatusConflict, protocol.ReasonNoAgent: http.StatusConflict,
	protocol.ReasonStale: http.StatusConflict, protocol.ReasonNotMoved: http.StatusConflict, protocol.ReasonOtherInstance: http.StatusConflict,
	protocol.ReasonInvalid: http.StatusUnprocessableEntity, protocol.ReasonMalformed: http.StatusBadRequest,
	protocol.ReasonTooLarge: http.StatusRequestEntityTooLarge,
}

// Refusal is an error with one of the reasons of launcher/protocol.
func Refusal(reason, format string, args ...any) *vmi.Refusal {
	return &vmi.Refusal{Finding: vmi.Finding{Reason: reason, Message: fmt.Sprintf(format, args...)}}
}

// finding is what a peer gets of an error: with the reason of a [vmi.Refusal], as
// Invalid if it is a [vmi.ErrInvalid], and as Unavailable otherwise.
func finding(err error) vmi.Finding {
	f := vmi.Finding{Reason: protocol.ReasonUnavailable, Message: err.Error()}
	if errors.Is(err, vmi.ErrInvalid) {
		f.Reason = protocol.ReasonInvalid
	}
	if r := (*vmi.Refusal)(nil); errors.As(err, &r) {
		f.Reason = r.Reason
	}
	return f
}

// Refuse answers a request with an error.
func Refuse(w http.ResponseWriter, err error) {
	f := finding(err)
	status := statuses[f.Reason]
	if status == 0 {
		status = http.StatusServiceUnavailable
	}
	WriteFinding(w, status, f)
}

// WriteFinding answers a request with a finding.
func WriteFinding(w http.ResponseWriter, status int, f vmi.Finding) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(f) // the client may be gone
}

// MaxText is how many bytes of a peer's text get into an error.
const MaxText = 1 << 10

// text is a peer's text as it gets into an error. What a terminal would not print as it is
// becomes a space.
func text(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsGraphic(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s[:min(len(s), MaxText)], ""))
}

// Limited is an error whose text a peer may have chosen, shortened: JSON errors quote what
// cannot be read. It wraps the error.
func Limited(err error) error { return limited{err} }

type limited struct{ error }

func (l limited) Error() string { return text(l.error.Error()) }
func (l limited) Unwrap() error { return l.error }

// refusal is the error that a response stands for. Of one that switches protocols
// nothing is read: what follows it is the other protocol, and may have no end.
func (c *Client) refusal(resp *http.Response) error {
	var f vmi.Finding
	if resp.StatusCode >= 200 {
		// Without a finding the status says enough.
		_ = json.NewDecoder(io.LimitReader(resp.Body, MaxHead)).Decode(&f)
	}
	return c.config.Refused(resp.StatusCode, vmi.Finding{Reason: text(f.Reason), Message: text(f.Message)})
}
