package controller

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/internal/transport"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// announceTimeout is how long it may take to announce a guest, from the question on whether it
// has moved.
const announceTimeout = finishTimeout + 10*time.Second

// errNotMoved says that there is nothing to announce.
var errNotMoved = errors.New("the guest has not moved")

// announce makes known in the networks of the pod that the guest is there, as soon as moved is
// called, which must be.
func (c *Controller) announce(ctx context.Context, s *session, v *vmi.VirtualMachineInstance) (moved func(bool)) {
	ctx, cancel := context.WithTimeout(ctx, announceTimeout)
	ctx, stop := context.WithCancelCause(ctx)
	has := make(chan struct{})
	c.migrations.running.Go(func() {
		defer cancel()
		err := guarded(func() error { return c.binder.announce(ctx, s.client, v, has) })
		if err != nil && !errors.Is(err, errNotMoved) {
			s.log.Warn("announce a guest that has moved", "err", err)
		}
	})
	return func(is bool) {
		if is {
			close(has)
		} else {
			stop(errNotMoved)
		}
	}
}

// holdTime is how long a guest that is to move holds its ports unless virt-controller repeats
// that it is to.
const holdTime = 15 * time.Second

// hold has a guest that is to move hold its ports in its networks until its migration begins
// here: the pod that it moves to comes up with its MAC addresses.
func (c *Controller) hold(ctx context.Context, of protocol.Target, options json.RawMessage) (*session, error) {
	var step protocol.MigrationStep
	if err := malformed(options, &step, func() bool { return step.UID != "" }); err != nil {
		return nil, err
	}
	v, s := c.handled(of)
	if s == nil {
		return nil, ErrNotHere
	}
	switch state := s.observe().State; {
	case state == nil:
		return s, transport.Refusal(protocol.ReasonUnavailable, "the launcher does not answer")
	case v.DeletionTimestamp != nil:
		return s, ErrStopping
	case c.binder == nil, state.Migration != nil && state.Migration.UID == step.UID:
		return s, nil // the call came late
	}
	m := &c.migrations
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.runners[s.podUID]; r != nil && (r.uid == step.UID || !r.over()) {
		return s, nil // this one too
	}
	if m.settling {
		return s, errSettling
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), holdTime)
	m.unhold(s.podUID)
	if m.holds == nil {
		m.holds = map[types.UID]func(){}
	}
	m.holds[s.podUID] = cancel
	m.running.Go(func() {
		defer cancel()
		if err := guarded(func() error { return c.binder.hold(ctx, s.client, v) }); err != nil && !errors.Is(err, context.Cause(ctx)) {
			s.log.Warn("announce a guest that is to move", "err", err)
		}
	})
	return s, nil
}

// unhold ends that the guest of the pod holds its ports. The lock is held.
func (m *migrations) unhold(pod types.UID) {
	if end := m.holds[pod]; end != nil {
		end()
		delete(m.holds, pod)
	}
}
