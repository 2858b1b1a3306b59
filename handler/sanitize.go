package handler

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/podvisor/podvisor/launcher/protocol"
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
	maxGeneration = 1 << 62
	maxCount      = 1 << 31
	minCID        = 3         // those below are not of guests
	maxCID        = 1<<32 - 2 // the next is that of any guest
)

// unknownReason stands for a reason that is not a word.
const unknownReason = "Unknown"

var (
	// word matches what can be a reason.
	word = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*$`)
	// mac matches an address of Ethernet.
	mac = regexp.MustCompile(`^([0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}$`)
	// token matches what can be a version, a machine type, or the name of a volume
	// or a disk.
	token = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z.+~_-]*$`)
)

// phases are the phases that this handler knows.
var phases = []protocol.Phase{
	protocol.Waiting, protocol.Starting, protocol.Running, protocol.Paused, protocol.Stopping, protocol.Ended,
}

// Sanitize returns the state with everything removed or shortened that does not
// fit into a status: long texts, reasons of more than one word, names that are
// none. A phase that is not known, of a newer launcher, becomes Starting: the
// guest is not reported to run. The state itself is not changed.
func Sanitize(s protocol.State) protocol.State {
	out := protocol.State{
		Generation: min(max(s.Generation, 0), maxGeneration),
		Phase:      protocol.Starting,
		Emulated:   s.Emulated,
		Machine:    sanitizeToken(s.Machine),
		Reboots:    min(max(s.Reboots, 0), maxCount),
		Panics:     min(max(s.Panics, 0), maxCount),
		Frozen:     s.Frozen,
	}
	if slices.Contains(phases, s.Phase) {
		out.Phase = s.Phase
	}
	if minCID <= s.VSOCKCID && s.VSOCKCID <= maxCID {
		out.VSOCKCID = s.VSOCKCID
	}
	if k := s.KernelBoot; k != nil {
		out.KernelBoot = k.DeepCopy() // numbers
	}
	if s.Finding != nil {
		out.Finding = new(SanitizeFinding(*s.Finding))
	}
	if s.Pause != nil && out.Phase == protocol.Paused {
		out.Pause = &protocol.Pause{
			Cause:   protocol.PauseCause(sanitizeReason(string(s.Pause.Cause))),
			Volume:  sanitizeToken(s.Pause.Volume),
			Message: shorten(s.Pause.Message),
		}
	}
	if s.End != nil && out.Phase == protocol.Ended {
		out.End = &protocol.End{Reason: protocol.EndReason(sanitizeReason(string(s.End.Reason))), Message: shorten(s.End.Message)}
	}
	if s.NotBooted != nil {
		out.NotBooted = new(SanitizeFinding(*s.NotBooted))
	}
	if s.Agent != nil {
		out.Agent = &protocol.Agent{Version: sanitizeToken(s.Agent.Version)}
	}
	out.Interfaces, out.Links = sanitizeInterfaces(s.Interfaces), sanitizeLinks(s.Links)
	if s.Credentials != nil {
		out.Credentials = &protocol.Credentials{Failure: shorten(s.Credentials.Failure)}
	}
	for _, d := range s.Disks {
		if len(out.Disks) < maxDisks && sanitizeToken(d.Name) != "" && len(d.Target) <= maxTarget && sanitizeToken(d.Target) != "" {
			out.Disks = append(out.Disks, protocol.Disk{Name: d.Name, Target: d.Target, SizeBytes: min(max(d.SizeBytes, 0), maxSize)})
		}
	}
	return out
}

// SanitizeFinding returns the finding with a reason of one word and a message of
// limited length.
func SanitizeFinding(f vmi.Finding) vmi.Finding {
	return vmi.Finding{Reason: sanitizeReason(f.Reason), Message: shorten(f.Message)}
}

func sanitizeReason(s string) string {
	if len(s) > maxWord || !word.MatchString(s) {
		return unknownReason
	}
	return s
}

func sanitizeToken(s string) string {
	if len(s) > maxWord || !token.MatchString(s) {
		return ""
	}
	return s
}

// shorten cuts off what of a message is too much. What a terminal would not print as
// it is becomes a space.
func shorten(s string) string {
	const more = "…"
	if len(s) > maxMessage {
		s = strings.ToValidUTF8(s[:maxMessage-len(more)], "") + more
	}
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsGraphic(r) {
			return ' '
		}
		return r
	}, s)
}
