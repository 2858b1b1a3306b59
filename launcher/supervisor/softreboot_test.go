package supervisor

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

func TestASoftRebootPressesThePowerButtonIfTheAgentFails(t *testing.T) {
	refuses := errors.New("the agent refuses")
	for _, tt := range []struct {
		name string
		// agent is what the agent does. Nil: there is none.
		agent  func(context.Context, *atomic.Int64) error
		noACPI bool
		err    error
		after  time.Duration // until the caller is answered
		// pressed is how often the button was pressed then, and when all is over.
		pressed, inTheEnd int64
	}{
		{name: "an agent that reboots the guest", agent: func(_ context.Context, n *atomic.Int64) error { n.Add(1); return nil }},
		{name: "no agent", pressed: 1, inTheEnd: 1},
		{name: "an agent that refuses", agent: func(context.Context, *atomic.Int64) error { return refuses }, pressed: 1, inTheEnd: 1},
		{name: "an agent that refuses a guest without ACPI", agent: func(context.Context, *atomic.Int64) error { return refuses }, noACPI: true, err: refuses},
		{name: "an agent that does nothing", agent: func(context.Context, *atomic.Int64) error {
			time.Sleep(time.Minute)
			return errors.New("no event came")
		}, after: agentRefuses, inTheEnd: 1},
		{name: "a guest that reboots late", agent: func(_ context.Context, n *atomic.Int64) error {
			time.Sleep(time.Minute)
			n.Add(1)
			return errors.New("the answer was lost")
		}, after: agentRefuses},
		{name: "a slow guest without ACPI", noACPI: true, agent: func(context.Context, *atomic.Int64) error {
			time.Sleep(time.Minute)
			return errors.New("no event came")
		}, after: agentRefuses},
		{name: "libvirt that does not answer", agent: func(ctx context.Context, _ *atomic.Int64) error {
			<-ctx.Done()
			return ctx.Err()
		}, after: agentRefuses, inTheEnd: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var work sync.WaitGroup
				var reboots, pressed atomic.Int64
				r := softReboot{reboots: reboots.Load, later: func(do func(context.Context)) { work.Go(func() { do(t.Context()) }) }}
				if tt.agent != nil {
					r.agent = func(ctx context.Context) error { return tt.agent(ctx, &reboots) }
				}
				if !tt.noACPI {
					r.button = func(context.Context) error { pressed.Add(1); return nil }
				}
				begun := time.Now()
				err := r.ask(t.Context())
				if tt.err == nil {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, tt.err)
				}
				require.Equal(t, tt.after, time.Since(begun))
				synctest.Wait()
				require.Equal(t, tt.pressed, pressed.Load())
				work.Wait()
				require.Equal(t, tt.inTheEnd, pressed.Load())
			})
		})
	}
}

func TestASoftRebootNeedsTheAgentOrACPI(t *testing.T) {
	var refusal *vmi.Refusal
	require.ErrorAs(t, softReboot{}.ask(t.Context()), &refusal)
	require.Equal(t, vmi.Finding{Reason: protocol.ReasonNoAgent, Message: "VMI neither have the agent connected nor the ACPI feature enabled"}, refusal.Finding)
}

func TestAFreezeIsKnownUntilTheThawOrTheReboot(t *testing.T) {
	s := &Supervisor{facts: newFacts()}
	state := func() bool { return s.facts.state().Frozen }
	s.setFrozen(true)
	require.True(t, state())
	<-s.facts.wake
	s.setFrozen(true)
	require.Empty(t, s.facts.wake, "what is known causes no report")
	s.setFrozen(false)
	require.False(t, state())
	s.setFrozen(true)
	s.facts.change((*facts).forget)
	require.False(t, state(), "another domain")
}
