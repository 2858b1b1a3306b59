package vmi

import "errors"

// ErrInvalid is wrapped by errors that say that a wish cannot be fulfilled as
// it is written: trying again does not help, changing the object does.
var ErrInvalid = errors.New("invalid")
