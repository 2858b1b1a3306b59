package libvirt

import (
	"errors"
	"fmt"
	"regexp"

	golibvirt "github.com/digitalocean/go-libvirt"

	"github.com/podvisor/podvisor/vmi"
)

// ErrNotFound is the class of errors about a domain that the daemon does not
// know.
var ErrNotFound = errors.New("no such domain")

// ErrProcessor is the class of errors about a processor that the host, or QEMU where
// it emulates, does not have in full.
var ErrProcessor = errors.New("the processor is not to be had")

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

var (
	// qemuTime is the time before each line of QEMU's, which libvirt quotes.
	qemuTime = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z `)
	// qemuEnded matches libvirt's two messages about a QEMU that ended before it
	// was ready.
	qemuEnded = regexp.MustCompile(`internal error: (process exited while connecting to monitor|(?i:qemu) unexpectedly closed the monitor)( \(vm='[^']*'\))?: `)
)

// Error says what failed and why. It is the same whenever the same fails, so that
// a repeated failure is no change of a state.
func (e *Error) Error() string {
	why := qemuEnded.ReplaceAllString(qemuTime.ReplaceAllString(e.Err.Error(), ""), "QEMU ended: ")
	return fmt.Sprintf("%s domain %s: %s", e.Op, e.Domain, why)
}

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is knows the classes of errors: [ErrNotFound], [ErrProcessor], and [vmi.ErrInvalid]
// for a domain that this libvirt and QEMU cannot create at all.
func (e *Error) Is(target error) bool {
	switch e.Code {
	case golibvirt.ErrNoDomain:
		return target == ErrNotFound
	case golibvirt.ErrCPUIncompatible:
		return target == ErrProcessor || target == vmi.ErrInvalid
	case golibvirt.ErrXMLError, golibvirt.ErrXMLDetail, golibvirt.ErrXMLInvalidSchema, golibvirt.ErrConfigUnsupported:
		return target == vmi.ErrInvalid
	default:
		return false
	}
}
