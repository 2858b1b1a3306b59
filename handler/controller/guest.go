package controller

import (
	"regexp"
	"strings"

	"github.com/podvisor/podvisor/handler"
	"github.com/podvisor/podvisor/launcher/control"
	"github.com/podvisor/podvisor/vmi"
)

var phases = map[control.Phase]handler.GuestPhase{
	control.Waiting:  handler.GuestStarting,
	control.Starting: handler.GuestStarting,
	control.Running:  handler.GuestRunning,
	control.Paused:   handler.GuestPaused,
	control.Stopping: handler.GuestStopping,
	control.Ended:    handler.GuestEnded,
}

// A launcher is in the hands of a tenant, and what it says goes into a status
// and into events, which the whole cluster pays for: so much of it is taken.
const (
	maxMessage = 1024
	maxWord    = 63
	maxDisks   = 512
)

// unknownReason stands for a reason that is none.
const unknownReason = "Unknown"

var (
	// oneWord matches what can be a reason.
	oneWord = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*$`)
	// oneVersion matches what can be a version.
	oneVersion = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z.+~_-]*$`)
)

// guest is a launcher's state in the handler's words. A phase of a newer
// launcher that is not known is taken for a guest that is not there yet.
func guest(s control.State) *handler.Guest {
	g := &handler.Guest{Phase: handler.GuestStarting, Emulated: s.Emulated}
	if len(s.Machine) <= maxWord {
		g.Machine = s.Machine
	}
	if s.Agent != nil {
		g.Agent = &handler.Agent{}
		if v := s.Agent.Version; len(v) <= maxWord && oneVersion.MatchString(v) {
			g.Agent.Version = v
		}
	}
	if p, ok := phases[s.Phase]; ok {
		g.Phase = p
	}
	if s.Finding != nil {
		f := finding(s.Finding.Reason, s.Finding.Message)
		g.Problem = &f
	}
	if s.End != nil {
		g.End = &handler.End{
			Finding:   finding(string(s.End.Reason), s.End.Message),
			Succeeded: s.End.Reason.Succeeded(),
		}
	}
	for _, d := range s.Disks {
		if len(d.Name) > maxWord || len(d.Target) > maxWord || len(g.Disks) == maxDisks {
			continue
		}
		g.Disks = append(g.Disks, vmi.VolumeStatus{Name: d.Name, Target: d.Target, Size: d.SizeBytes})
	}
	return g
}

// finding is what a launcher says, as far as it fits.
func finding(reason, message string) handler.Finding {
	if len(reason) > maxWord || !oneWord.MatchString(reason) {
		reason = unknownReason
	}
	return handler.Finding{Reason: reason, Message: shorten(message)}
}

// shorten cuts off what of a message is too much.
func shorten(s string) string {
	const more = "…"
	if len(s) <= maxMessage {
		return s
	}
	return strings.ToValidUTF8(s[:maxMessage-len(more)], "") + more
}
