package protocol

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/podvisor/podvisor/internal/shorten"
)

// maxEndMessage is the longest message of an end in a termination message, in bytes. A
// kubelet keeps the last 4 KiB of a file: of a longer one the reason would be lost.
const maxEndMessage = 2 << 10

// separator is between the reason and the message.
const separator = ": "

// endReasons are all of them.
var endReasons = []EndReason{Shutdown, Killed, Crashed, CannotStart, Cancelled, MovedAway, StateMissing}

// Termination is the end as the termination message of the launcher's container, which
// people read in the description of the pod, and [ParseTermination] reads: the reason and
// the message, in one line. Of a message that is too long there is the end.
func (e End) Termination() string {
	return string(e.Reason) + separator + OneLine(e.Message) + "\n"
}

// ParseTermination reads the termination message of a launcher's container. It is not ok
// for any other text, and for a reason that this release does not know: of a program that
// ended before it was a launcher, or of a newer one.
//
// The text is a tenant's.
func ParseTermination(text string) (e End, ok bool) {
	text = strings.TrimSpace(text)
	reason, message, found := strings.Cut(text+" ", separator)
	if !found || !slices.Contains(endReasons, EndReason(reason)) || strings.ContainsFunc(text, isBreak) {
		return End{}, false
	}
	return End{Reason: EndReason(reason), Message: OneLine(message)}, true
}

// OneLine is a text that a tenant may have written as a message for people: without line
// breaks, without what a terminal would not print as it is, and of 2 KiB at most, of which
// it keeps the end.
func OneLine(s string) string {
	s = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, ""), isBreak), "; ")
	return shorten.Tail(strings.TrimSpace(printable(s)), maxEndMessage)
}

func isBreak(r rune) bool { return r == '\n' || r == '\r' }

// printable is the text with a space for what a terminal would not print as it is.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsGraphic(r) {
			return ' '
		}
		return r
	}, s)
}
