package supervisor

import (
	"context"
	"errors"
	"time"

	"github.com/podvisor/podvisor/internal/launcher/libvirt"
	"github.com/podvisor/podvisor/internal/transport"
	"github.com/podvisor/podvisor/launcher/protocol"
)

const (
	// agentRefuses is how long a soft reboot waits for the agent to refuse it. Later, the
	// caller is answered, and libvirt goes on waiting for the guest.
	agentRefuses = 6 * time.Second
	// agentReboots is longer than libvirt waits for the guest.
	agentReboots = 90 * time.Second
)

// softReboot is what a guest can be asked to reboot with.
type softReboot struct {
	// agent asks the agent, and returns when the guest reboots. Nil: none is connected.
	agent func(context.Context) error
	// button presses the power button. Nil: the guest has no ACPI.
	button func(context.Context) error
	// reboots is how often the guest has rebooted.
	reboots func() int64
	// later runs what goes on when the caller is answered. Its context ends with the
	// launcher.
	later func(func(context.Context))
}

// ask asks the agent, and presses the power button if there is none or if it fails. An
// agent that neither refuses nor reboots the guest at once has taken it: if libvirt
// reports later that the guest did not reboot, the button is pressed then.
func (r softReboot) ask(ctx context.Context) error {
	switch {
	case r.agent == nil && r.button == nil:
		return transport.Refusal(protocol.ReasonNoAgent, "VMI neither have the agent connected nor the ACPI feature enabled")
	case r.agent == nil:
		return r.button(ctx)
	}
	before := r.reboots()
	answer, answered := make(chan error), make(chan struct{})
	r.later(func(inner context.Context) {
		asking, cancel := context.WithTimeout(inner, agentReboots)
		err := r.agent(asking)
		cancel()
		select {
		case answer <- err:
			return
		case <-answered:
		case <-inner.Done():
			return
		}
		if err != nil && r.button != nil && r.reboots() == before {
			pressing, cancel := context.WithTimeout(inner, callTimeout)
			defer cancel()
			_ = r.button(pressing) // which logs its errors
		}
	})
	defer close(answered)
	select {
	case err := <-answer:
		if err == nil || r.button == nil || r.reboots() != before {
			return err
		}
		if second := r.button(ctx); second != nil {
			return errors.Join(err, second)
		}
		return nil
	case <-time.After(agentRefuses):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// softReboot asks the guest to reboot. One that is asked already is not asked again.
func (s *Supervisor) softReboot(ctx context.Context, c *libvirt.Connection) error {
	connected, err := c.AgentConnected(ctx, s.domainName())
	if err != nil {
		return err
	}
	r := softReboot{reboots: func() int64 { return s.facts.known().Reboots }, later: func(do func(context.Context)) { s.work.Go(func() { do(s.inner) }) }}
	if connected {
		if !s.rebooting.TryLock() {
			return nil
		}
		r.agent = func(ctx context.Context) error {
			defer s.rebooting.Unlock()
			err := c.RebootByAgent(ctx, s.domainName())
			s.config.Logger.Info("ask the guest's agent to reboot", "err", err)
			return err
		}
	}
	if s.facts.acpi() {
		r.button = func(ctx context.Context) error {
			err := c.Reboot(ctx, s.domainName())
			s.config.Logger.Info("press the power button for a reboot", "err", err)
			return err
		}
	}
	return r.ask(ctx)
}
