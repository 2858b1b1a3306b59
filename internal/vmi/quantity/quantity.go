package quantity

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The bounds of a quantity's text. A JSON number has those of its digits.
const (
	// Pattern is what the text matches.
	Pattern = `^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[01]?[0-9])?$`
	// MaxLength is the largest number of its characters.
	MaxLength = 32
)

// Most is the largest value of a quantity, 1Ei. Its negative is the least.
const Most = 1 << 60

// MaxFaults is the number of faults that are reported at most: an object can have
// a million of them.
const MaxFaults = 50

var pattern = regexp.MustCompile(Pattern)

// Parse is resource.ParseQuantity for texts within the bounds, and values of at
// most [Most]. The error of any other is of the class resource.ErrFormatWrong.
func Parse(text string) (resource.Quantity, error) {
	if !bounded(text) {
		return resource.Quantity{}, fmt.Errorf("parse the quantity %s: %w", shown(text), resource.ErrFormatWrong)
	}
	q, err := resource.ParseQuantity(text)
	if err == nil && !within(q) {
		return resource.Quantity{}, fmt.Errorf("parse the quantity %s: it is not between -1Ei and 1Ei: %w", text, resource.ErrFormatWrong)
	}
	return q, err
}

func bounded(text string) bool { return len(text) <= MaxLength && pattern.MatchString(text) }

// shown is a text for a message, shortened if it is long.
func shown(text string) string {
	if len(text) > MaxLength {
		return fmt.Sprintf("%q and %d bytes more", strings.ToValidUTF8(text[:MaxLength], ""), len(text)-MaxLength)
	}
	return fmt.Sprintf("%q", text)
}

// Faults returns the quantities beyond [Most] in o, which is an object or a part of
// one at that path: those of its fields, maps and lists at any depth. There are at
// most [MaxFaults].
func Faults(at *field.Path, o any) field.ErrorList {
	var l field.ErrorList
	visit(at, reflect.ValueOf(o), func(at *field.Path, q resource.Quantity) bool {
		if !within(q) {
			bound := "must be at most 1Ei: no node has more, and "
			if q.Sign() < 0 {
				bound = "must be at least -1Ei: "
			}
			l = append(l, field.Invalid(at, describe(q), bound+"sums of such quantities do not fit into the 64 bits that Kubernetes computes with"))
		}
		return len(l) < MaxFaults
	})
	return l
}

// The digits of a quantity within the bounds, and its power of ten, are less than
// these, with room to spare.
const (
	maxBits  = 256
	maxScale = 64
)

// small says that it takes no time to compute with the quantity. Nor does it take
// time to ask.
func small(q resource.Quantity) bool {
	amount := q.AsDec()
	return amount.UnscaledBig().BitLen() <= maxBits && -maxScale <= amount.Scale() && amount.Scale() <= maxScale
}

func within(q resource.Quantity) bool {
	if q.IsZero() {
		return true
	}
	return small(q) && q.CmpInt64(Most) <= 0 && q.CmpInt64(-Most) >= 0
}

// describe is the quantity for a message. The digits of a large one are not
// written. The largest is what Kubernetes makes of all that are larger, as 900Ei.
func describe(q resource.Quantity) string {
	if small(q) {
		if q.CmpInt64(math.MaxInt64) == 0 {
			return "8Ei or more"
		}
		return q.String()
	}
	amount := q.AsDec()
	if bits := amount.UnscaledBig().BitLen(); bits > maxBits {
		return fmt.Sprintf("a number of %d bits", bits)
	}
	return fmt.Sprintf("%se%d", amount.UnscaledBig(), -int64(amount.Scale()))
}
