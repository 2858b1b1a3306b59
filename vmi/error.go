package vmi

import "errors"

// ErrInvalid is wrapped by errors about an object that cannot be realised as it
// is written: a retry does not help, a change of the object does.
var ErrInvalid = errors.New("invalid")

// Refusal is the error of a request that a node or a launcher does not carry out. Its
// reason is one of those of a launcher's protocol: "Unknown" of a call or stream that it
// does not have, "Unavailable" of one that it cannot have now, "Busy" of one that another
// client has, "NoAgent" of one that needs the guest's agent, "Malformed" and "TooLarge" of
// what it does not read, "NotFound" of a VMI that is not there.
type Refusal struct{ Finding }

// Error is the message.
func (r *Refusal) Error() string { return r.Message }
