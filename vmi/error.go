package vmi

import "errors"

// ErrInvalid is wrapped by errors about an object that cannot be realised as it
// is written: a retry does not help, a change of the object does.
var ErrInvalid = errors.New("invalid")
