package controller

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/podvisor/podvisor/launcher/control"
)

// follow receives the launcher's states until the domain has ended, or returns
// why it cannot. A connection that stays open proves nothing of a process that
// hangs, so the launcher is also asked for its state now and then.
func (s *session) follow(ctx context.Context) (answered bool, err error) {
	var wg sync.WaitGroup
	defer wg.Wait()
	watch, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	first := time.AfterFunc(s.timing.answer, func() { cancel(s.noAnswer()) })
	defer first.Stop()
	for state, err := range s.client.Watch(watch) {
		if err != nil {
			if cause := context.Cause(watch); cause != nil {
				err = cause
			}
			return answered, err
		}
		if !answered {
			answered = true
			first.Stop()
			s.log.Info("connected to the launcher", "pod", s.podUID, "phase", state.Sanitized().Phase)
			wg.Go(func() { cancel(guarded(func() error { return s.check(watch) })) })
		}
		s.receive(state)
	}
	return answered, nil
}

func (s *session) noAnswer() error {
	return fmt.Errorf("the launcher does not answer within %s", s.timing.answer)
}

// check asks the launcher for its state each heartbeat until ctx ends, and returns
// why the connection is of no use.
func (s *session) check(ctx context.Context) error {
	for {
		// The sessions of a node that started at once do not ask at once.
		if !sleep(ctx, time.Duration(float64(s.timing.heartbeat)*(0.8+0.4*rand.Float64()))) {
			return nil
		}
		if err := s.probe(ctx); err != nil {
			return err
		}
	}
}

// probe asks the launcher for its state once. A state that the stream has not
// brought when the launcher had time to send it means that the stream has
// stopped.
func (s *session) probe(ctx context.Context) error {
	before := s.count()
	bounded, cancel := context.WithTimeout(ctx, s.timing.answer)
	defer cancel()
	state, err := s.client.State(bounded)
	switch refusal := (*control.Error)(nil); {
	case errors.As(err, &refusal):
		s.alive(0)
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return s.noAnswer()
	case err != nil:
		return err
	}
	state = state.Sanitized()
	s.alive(state.Generation)
	if s.isLatest(state) || !sleep(ctx, s.timing.answer) || s.count() > before {
		return nil
	}
	return fmt.Errorf("the launcher's stream of states has stopped: it has not brought phase %s", state.Phase)
}

// sleep says whether d has passed before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
