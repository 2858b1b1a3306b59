package supervisor

import (
	"context"
	"errors"
	"time"

	"golang.org/x/time/rate"

	"github.com/podvisor/podvisor/internal/launcher/libvirt"
	"github.com/podvisor/podvisor/launcher/protocol"
)

const (
	// agentSettles is how long an agent that is known is left alone after its
	// channel was closed or opened: an agent or a guest that starts again, or a
	// guest that powers off, changes nothing that is reported.
	agentSettles = 5 * time.Second
	// A guest opens and closes the channel as often as it likes, and each look
	// costs questions and may cost a write of the status: so many at once, and one
	// in that time.
	looksAtOnce = 4
	lookEvery   = time.Minute
	// answerTimeout is longer than libvirt waits for an agent.
	answerTimeout = 12 * time.Second
)

// agent follows the agent in the guest.
type agent struct {
	// look finds out what is to be known of the agent, and says whether an agent is
	// known now, and whether to look again after a while though nothing changes.
	look func(context.Context) (known, again bool)
	// changed has something in it when there may be something new.
	changed chan struct{}
}

// notice says that there may be something new.
func (a *agent) notice() {
	select {
	case a.changed <- struct{}{}:
	default: // it will be looked at already
	}
}

// run looks whenever there may be something new, until ctx ends.
func (a *agent) run(ctx context.Context) {
	looks := rate.NewLimiter(rate.Every(lookEvery), looksAtOnce)
	known := false
	var later <-chan time.Time
	for {
		select {
		case <-a.changed:
		case <-later:
		case <-ctx.Done():
			return
		}
		if known {
			select {
			case <-time.After(agentSettles):
			case <-ctx.Done():
				return
			}
		}
		if looks.Wait(ctx) != nil {
			return
		}
		select {
		case <-a.changed: // before this look
		default:
		}
		var again bool
		known, again = a.look(ctx)
		later = nil
		if again {
			later = time.After(lookEvery)
		}
	}
}

// lookAtAgent notes whether there is an agent in the guest, and its version. A
// version that is known stays until the agent goes or gives another.
func (s *Supervisor) lookAtAgent(ctx context.Context) (known, again bool) {
	before := s.facts.known().Agent
	connected, version := false, ""
	err := s.call(ctx, func(ctx context.Context, c *libvirt.Connection) (err error) {
		connected, err = c.AgentConnected(ctx, s.domainName())
		return err
	})
	if err != nil {
		s.config.Logger.Debug("the agent is not known", "err", err)
		return before != nil, !errors.Is(err, libvirt.ErrNotFound)
	}
	s.config.Logger.Debug("looked for the agent", "connected", connected)
	if !connected {
		s.setAgent(nil)
		s.lookAtSecrets(ctx)
		return false, false
	}
	version, err = s.askVersion(ctx)
	if err != nil {
		s.config.Logger.Debug("the version of the agent is not known", "err", err)
		if before != nil {
			version = before.Version
		}
	}
	// Before the agent is reported, so that all of it is in one write of the status.
	s.observeGuest(ctx)
	if s.facts.known().Frozen {
		s.askFrozen(ctx) // it may have been thawed in the guest
	}
	credentials := s.credentials.sync(ctx, true, true)
	s.setAgent(&protocol.Agent{Version: version})
	if credentials != nil {
		s.setCredentials(credentials)
	}
	return true, version == ""
}

// askVersion asks the agent for its version.
func (s *Supervisor) askVersion(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	conn, err := s.session.connection(ctx)
	if err != nil {
		return "", err
	}
	return conn.AgentVersion(ctx, s.domainName())
}

// setAgent notes what is known of the agent.
func (s *Supervisor) setAgent(now *protocol.Agent) {
	if s.facts.note(func(s *protocol.State) { s.Agent = now }) {
		s.config.Logger.Info("the guest's agent changed", "agent", now)
	}
}
