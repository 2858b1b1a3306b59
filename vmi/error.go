package vmi

import (
	"errors"
	"strings"
)

// ErrInvalid is wrapped by errors about an object that cannot be realised as it
// is written: a retry does not help, a change of the object does.
var ErrInvalid = errors.New("invalid")

// FaultText is what the error says in one line, without the word of [ErrInvalid] at its ends:
// in a condition whose reason says the same. Errors that were joined are separated by "; ".
func FaultText(err error) string {
	word := ErrInvalid.Error()
	lines := strings.Split(err.Error(), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimSuffix(strings.TrimPrefix(l, word+": "), ": "+word)
	}
	return strings.Join(lines, "; ")
}

// Refusal is the error of a request that a node or a launcher does not carry out. Its
// reason is one of the Refused constants, or one of a later release.
type Refusal struct{ Finding }

// The reasons of a [Refusal]. They are words of the protocols between virt-controller,
// virt-handler and launchers.
const (
	// RefusedMalformed: the request is not what the protocol says.
	RefusedMalformed = "Malformed"
	// RefusedTooLarge: the request is larger than any VMI needs.
	RefusedTooLarge = "TooLarge"
	// RefusedOtherInstance: the request is about a VMI that is not the launcher's.
	RefusedOtherInstance = "OtherMachine"
	// RefusedInvalid: the domain cannot be made as it is desired.
	RefusedInvalid = "Invalid"
	// RefusedStale: what is desired is older than what is in force.
	RefusedStale = "Stale"
	// RefusedUnknown: the launcher does not know the call or the stream.
	RefusedUnknown = "Unknown"
	// RefusedUnavailable: it cannot be done now.
	RefusedUnavailable = "Unavailable"
	// RefusedBusy: another client has the stream, or there are as many as may be open.
	RefusedBusy = "Busy"
	// RefusedNoAgent: the call needs the guest's agent, which is not connected.
	RefusedNoAgent = "NoAgent"
	// RefusedNotFound: there is no such VMI on the node. Only a handler says it.
	RefusedNotFound = "NotFound"
)

// Error is the message.
func (r *Refusal) Error() string { return r.Message }
