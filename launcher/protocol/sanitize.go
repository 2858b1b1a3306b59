package protocol

import (
	"regexp"

	"github.com/podvisor/podvisor/internal/shorten"
	"github.com/podvisor/podvisor/vmi"
)

// A tenant controls the launcher, and what it reports goes into a status and into
// events, which load the API server of all. These are the limits.
const (
	maxMessage    = 1024
	maxWord       = 63
	maxTarget     = 16
	maxSize       = 1 << 56
	maxDisks      = 512
	maxLinks      = 256 // as many as a spec has interfaces
	maxInterfaces = 32
	maxAddresses  = 16
	maxGeneration = 1 << 62
	maxCount      = 1 << 31
	minCID        = 3         // those below are not of guests
	maxCID        = 1<<32 - 2 // the next is that of any guest
)

// UnknownReason stands for a reason that is not a word.
const UnknownReason = "Unknown"

var (
	// word matches what can be a reason.
	word = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*$`)
	// mac matches an address of Ethernet.
	mac = regexp.MustCompile(`^([0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}$`)
	// token matches what can be a version, a machine type, or the name of a volume
	// or a disk.
	token = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z.+~_-]*$`)
)

// SanitizeFinding returns the finding with a reason of one word and a message of
// limited length.
func SanitizeFinding(f vmi.Finding) vmi.Finding {
	return vmi.Finding{Reason: sanitizeReason(f.Reason), Message: message(f.Message)}
}

// sanitizeReason is a reason of one word, whatever type it has.
func sanitizeReason[T ~string](r T) T {
	if len(r) > maxWord || !word.MatchString(string(r)) {
		return UnknownReason
	}
	return r
}

func sanitizeToken(s string) string {
	if len(s) > maxWord || !token.MatchString(s) {
		return ""
	}
	return s
}

// shortName is a name that a guest gives, which may have spaces.
func shortName(s string) string {
	if len(s) > maxWord {
		return ""
	}
	return message(s)
}

// message cuts off what of a message is too much. What a terminal would not print as
// it is becomes a space.
func message(s string) string {
	return shorten.Head(printable(s), maxMessage)
}

// within is the number, or the limit that it is beyond.
func within(n, most int64) int64 { return min(max(n, 0), most) }

// present is what v points to, sanitized, if there is any.
func present[T any](v *T, sanitize func(T) T) *T {
	if v == nil {
		return nil
	}
	return new(sanitize(*v))
}

// first are the first elements that have a form that is passed on, sanitized.
func first[T any](most int, all []T, sanitize func(T) (T, bool)) []T {
	var out []T
	for _, v := range all {
		if len(out) == most {
			break
		}
		if v, ok := sanitize(v); ok {
			out = append(out, v)
		}
	}
	return out
}
