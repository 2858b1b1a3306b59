package supervisor

import (
	"context"

	"github.com/podvisor/podvisor/internal/launcher/libvirt"
	"github.com/podvisor/podvisor/internal/transport"
	"github.com/podvisor/podvisor/launcher/protocol"
)

// moving is the refusal of a call because the guest moves.
func moving(call protocol.Call) error {
	return transport.Refusal(protocol.ReasonBusy, "%s: the guest moves to another node: try again in a moment", call)
}

// immobile is why a call about pausing is refused: libvirt resumes no guest that is sent. One
// that is paused meanwhile arrives paused.
func (f *facts) immobile(call protocol.Call) error {
	switch stage := f.moving().Stage; {
	case stage == protocol.MigrationSent, stage == protocol.MigrationSends && call == protocol.CallUnpause:
		return moving(call)
	}
	return nil
}

// still is why a call is refused that changes the guest in a way that is not sent with it, or
// that libvirt does not do meanwhile.
func (f *facts) still(call protocol.Call) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch f.moving().Stage {
	case protocol.MigrationSends, protocol.MigrationSent:
		return moving(call)
	}
	return nil
}

// reachable is why nothing is asked of the guest: it is not here yet, or stands still because
// everything is sent. libvirt would let such a question wait.
func (f *facts) reachable() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch f.moving().Stage {
	case protocol.MigrationReceives:
		return errNotRunning
	case protocol.MigrationSent:
		return transport.Refusal(protocol.ReasonBusy, "the guest moves to another node: try again in a moment")
	}
	return nil
}

// withStill does something with a domain whose guest does not move.
func (s *Supervisor) withStill(ctx context.Context, call protocol.Call, do func(context.Context, *libvirt.Connection) error) error {
	if err := s.facts.still(call); err != nil {
		return err
	}
	return s.withGuest(ctx, do)
}
