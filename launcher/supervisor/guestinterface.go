package supervisor

import (
	"context"
	"reflect"
	"time"

	"github.com/podvisor/podvisor/launcher/protocol"
)

// askEvery is the time between two questions for the guest's interfaces, whose changes
// are no events.
const askEvery = 30 * time.Second

// followInterfaces asks the agent for the guest's interfaces again and again while one
// is known, until ctx ends.
func (s *Supervisor) followInterfaces(ctx context.Context) {
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if s.facts.agentNow() != nil {
			s.askInterfaces(ctx)
		}
	}
}

// askInterfaces notes the interfaces that the agent reports. What is known stays if it
// does not answer.
func (s *Supervisor) askInterfaces(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	conn, err := s.session.connection(ctx)
	if err != nil {
		return
	}
	all, err := conn.AgentInterfaces(ctx, s.domainName())
	if err != nil {
		s.config.Logger.Debug("the guest's interfaces are not known", "err", err)
		return
	}
	s.setInterfaces(all)
}

// setInterfaces notes the guest's interfaces. The loop is not woken if those were known.
func (s *Supervisor) setInterfaces(all []protocol.Interface) {
	if !reflect.DeepEqual(s.facts.interfacesNow(), all) {
		s.facts.change(func(f *facts) { f.interfaces = all })
	}
}
