package controller

import (
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

// guest is a launcher's state in the handler's words. A phase of a newer
// launcher that is not known is taken for a guest that is not there yet.
func guest(s control.State) *handler.Guest {
	g := &handler.Guest{Phase: handler.GuestStarting, Emulated: s.Emulated, Machine: s.Machine}
	if p, ok := phases[s.Phase]; ok {
		g.Phase = p
	}
	if s.Problem != nil {
		g.Problem = &handler.Finding{Reason: s.Problem.Reason, Message: s.Problem.Message}
	}
	if s.End != nil {
		g.End = &handler.End{
			Finding:   handler.Finding{Reason: string(s.End.Reason), Message: s.End.Message},
			Succeeded: s.End.Reason.Succeeded(),
		}
	}
	for _, d := range s.Disks {
		g.Disks = append(g.Disks, vmi.VolumeStatus{Name: d.Name, Target: d.Target, Size: d.SizeBytes})
	}
	return g
}
