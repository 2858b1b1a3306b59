package supervisor

import (
	"context"
	"time"
)

const (
	// askEvery is the time between two looks at what the agent says of the guest, whose
	// changes are no events.
	askEvery = 30 * time.Second
	// factsTimeout is how long all questions of a look may take.
	factsTimeout = guestTimeout
)

// followGuest looks at the guest again and again while an agent is known, until ctx ends.
func (s *Supervisor) followGuest(ctx context.Context) {
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if s.facts.known().Agent != nil {
			s.observeGuest(ctx)
		}
	}
}

// observeGuest notes what the agent says of the guest. What is known stays if it does not
// answer.
func (s *Supervisor) observeGuest(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, factsTimeout)
	defer cancel()
	conn, err := s.session.connection(ctx)
	if err != nil {
		return
	}
	known, err := conn.ObserveGuest(ctx, s.domainName())
	if err != nil {
		s.config.Logger.Debug("not all of the guest is known", "err", err)
	}
	s.facts.note(known)
}
