package validate

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/internal/shorten"
	"github.com/podvisor/podvisor/internal/vmi/quantity"
	"github.com/podvisor/podvisor/vmi"
)

// The size of a report of faults: an object can have tens of thousands of them, each
// with a value of megabytes.
const (
	// MaxFaults is the number of faults that are reported at most.
	MaxFaults = quantity.MaxFaults
	// maxShown is how much of a value or of a path is shown, and maxDetail how much of
	// a message.
	maxShown  = 256
	maxDetail = 2048
)

// First are the faults as far as a user can read them: if they are [MaxFaults] or
// more, the first of them and one that says so, and long values are cut.
func First(l field.ErrorList) field.ErrorList {
	var out field.ErrorList
	for _, e := range l[:min(len(l), MaxFaults)] {
		out = append(out, shortened(e))
	}
	if len(l) >= MaxFaults {
		out = append(out, &field.Error{Type: field.ErrorTypeTooMany, Field: "object", BadValue: field.OmitValueType{},
			Detail: fmt.Sprintf("only the first %d faults are listed: correct them, then the next are", MaxFaults)})
	}
	return out
}

// shortened is the fault with no more than can be read of its value.
func shortened(e *field.Error) *field.Error {
	value, isText := e.BadValue.(string)
	_, omitted := e.BadValue.(field.OmitValueType)
	large := !isText && !omitted && len(e.ErrorBody()) > maxDetail
	if len(value) <= maxShown && len(e.Field) <= maxShown && len(e.Detail) <= maxDetail && !large {
		return e
	}
	e = &field.Error{Type: e.Type, Field: shorten.Head(e.Field, maxShown), BadValue: e.BadValue, Detail: shorten.Head(e.Detail, maxDetail)}
	switch {
	case isText:
		e.BadValue = shorten.Head(value, maxShown)
	case large:
		e.BadValue = field.OmitValueType{}
	}
	return e
}

// Causes are the first of the faults, as an API server reports them.
func Causes(l field.ErrorList) []metav1.StatusCause {
	var out []metav1.StatusCause
	for _, e := range First(l) {
		out = append(out, metav1.StatusCause{Type: metav1.CauseType(e.Type), Message: e.ErrorBody(), Field: e.Field})
	}
	return out
}

// Error is one error with the first of the faults that wraps [vmi.ErrInvalid], or nil
// if there is no fault.
func Error(l field.ErrorList) error {
	if len(l) == 0 {
		return nil
	}
	l = First(l)
	texts := make([]string, len(l))
	for i, e := range l {
		if texts[i] = e.Error(); e.Field == "" {
			texts[i] = e.ErrorBody()
		}
	}
	return fmt.Errorf("%w: %s", vmi.ErrInvalid, strings.Join(texts, "; "))
}

// as reports a fault under the name that KubeVirt gives the field, and begins
// the message with the field's path if that is not the same.
func as(name string, e *field.Error) *field.Error {
	if e.Field == name {
		return e
	}
	e.Detail = strings.TrimSuffix(e.Field+": "+e.Detail, ": ")
	e.Field = name
	return e
}

// repeated reports a name that another has already.
func repeated(at *field.Path, name, what string) *field.Error {
	e := field.Duplicate(at, name)
	e.Detail = "another " + what + " has this name: choose one of its own"
	return e
}

// whole reports a fault that no single field can correct.
func whole(kind field.ErrorType, message string) *field.Error {
	return &field.Error{Type: kind, BadValue: field.OmitValueType{}, Detail: message}
}

// invalid makes one fault of each message.
func invalid(at *field.Path, value string, messages []string) field.ErrorList {
	var l field.ErrorList
	for _, m := range messages {
		l = append(l, field.Invalid(at, value, m))
	}
	return l
}

// within refuses a number outside of its limits, in the words of an API server that refuses it
// by the schema.
func within(at *field.Path, value, least, most int64) field.ErrorList {
	switch {
	case value < least:
		return field.ErrorList{field.Invalid(at, value, fmt.Sprintf("should be greater than or equal to %d", least))}
	case value > most:
		return field.ErrorList{field.Invalid(at, value, fmt.Sprintf("should be less than or equal to %d", most))}
	}
	return nil
}

// oneOf refuses a value that is not empty and not among those allowed.
func oneOf[T ~string](at *field.Path, value T, allowed ...T) field.ErrorList {
	if value == "" {
		return nil
	}
	return exactlyOneOf(at, value, allowed...)
}

// exactlyOneOf refuses a value that is not among those allowed.
func exactlyOneOf[T ~string](at *field.Path, value T, allowed ...T) field.ErrorList {
	names := make([]string, len(allowed))
	for i, a := range allowed {
		if value == a {
			return nil
		}
		names[i] = string(a)
	}
	return field.ErrorList{field.Invalid(at, value, "must be "+alternatives(names))}
}

// alternatives reads as in: a, b or c.
func alternatives(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// count says how many of the conditions hold.
func count(conditions ...bool) int {
	n := 0
	for _, c := range conditions {
		if c {
			n++
		}
	}
	return n
}

// enabled says whether a switch is on that is on unless it is switched off.
func enabled(b *bool) bool { return b == nil || *b }

func plural(n int, noun string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, noun)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
