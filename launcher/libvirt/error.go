package libvirt

import (
	"errors"
	"fmt"

	golibvirt "github.com/digitalocean/go-libvirt"

	"github.com/podvisor/podvisor/vmi"
)

// ErrNotFound is the class of errors about a domain that the daemon does not
// know.
var ErrNotFound = errors.New("no such domain")

// Error is the failure of a call to libvirt.
type Error struct {
	// Op is what was to be done, for example "create".
	Op string
	// Domain is the domain's name.
	Domain string
	// Code is libvirt's error code. 0: the daemon did not answer.
	Code golibvirt.ErrorNumber
	// Err is the cause.
	Err error
}

func failure(op, domain string, err error) error {
	if err == nil {
		return nil
	}
	e := &Error{Op: op, Domain: domain, Err: err}
	if le := (golibvirt.Error{}); errors.As(err, &le) {
		e.Code = golibvirt.ErrorNumber(le.Code)
	}
	return e
}

// Error says what failed and why.
func (e *Error) Error() string { return fmt.Sprintf("%s domain %s: %v", e.Op, e.Domain, e.Err) }

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is tells the classes of errors: [ErrNotFound], and [vmi.ErrInvalid] for a
// domain that this libvirt and QEMU cannot make at all.
func (e *Error) Is(target error) bool {
	switch e.Code {
	case golibvirt.ErrNoDomain:
		return target == ErrNotFound
	case golibvirt.ErrXMLError, golibvirt.ErrXMLDetail, golibvirt.ErrXMLInvalidSchema, golibvirt.ErrConfigUnsupported:
		return target == vmi.ErrInvalid
	default:
		return false
	}
}
