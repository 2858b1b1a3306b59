package control

import (
	"fmt"
	"net/http"

	"github.com/podvisor/podvisor/vmi"
)

// The reasons of an [Error].
const (
	// ReasonMalformed: the request is not what the protocol says.
	ReasonMalformed = "Malformed"
	// ReasonTooLarge: the request is larger than any machine needs.
	ReasonTooLarge = "TooLarge"
	// ReasonOtherMachine: the request is about a machine that is not the
	// launcher's.
	ReasonOtherMachine = "OtherMachine"
	// ReasonInvalid: the machine cannot be made as it is wanted.
	ReasonInvalid = "Invalid"
	// ReasonUnavailable: the launcher cannot do it now.
	ReasonUnavailable = "Unavailable"
)

// Error is a launcher's refusal of a request. It is [vmi.ErrInvalid] if the
// same request will be refused again.
type Error struct {
	// Status is the code of the HTTP response.
	Status int
	// Reason is one word, for programs. Empty: the answer had none.
	Reason string
	// Message is a sentence, for people.
	Message string
}

// Error is the launcher's own message.
func (e *Error) Error() string {
	if e.Message == "" {
		return fmt.Sprintf("the launcher answers %d %s", e.Status, http.StatusText(e.Status))
	}
	return e.Message
}

// Is makes a refusal that is final a [vmi.ErrInvalid].
func (e *Error) Is(target error) bool {
	return target == vmi.ErrInvalid && e.Status >= 400 && e.Status < 500
}
