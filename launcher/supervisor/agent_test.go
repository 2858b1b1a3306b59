package supervisor

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/launcher/libvirt"
	"github.com/podvisor/podvisor/launcher"
)

// followed follows an agent while do runs, and returns the times of the looks.
func followed(t *testing.T, a *agent, look func(n int) (known, again bool), do func()) []time.Duration {
	t.Helper()
	var looks []time.Duration
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		began := time.Now()
		a.changed = make(chan struct{}, 1)
		a.look = func(context.Context) (bool, bool) {
			looks = append(looks, time.Since(began))
			return look(len(looks))
		}
		go func() {
			do()
			cancel()
		}()
		a.run(ctx)
	})
	return looks
}

func TestAnAgentIsLookedAtWhenItComesAndWhenItHasGone(t *testing.T) {
	a := &agent{}
	looks := followed(t, a, func(n int) (bool, bool) { return n == 1, false }, func() {
		time.Sleep(3 * time.Second)
		a.notice()
		time.Sleep(10 * time.Second)
		a.notice() // it closes
		time.Sleep(time.Second)
		a.notice() // and opens
		time.Sleep(time.Second)
		a.notice() // and closes
		time.Sleep(time.Hour)
	})
	require.Equal(t, []time.Duration{3 * time.Second, 18 * time.Second}, looks)
}

func TestAnAgentThatDoesNotAnswerIsAskedAgain(t *testing.T) {
	a := &agent{}
	looks := followed(t, a, func(n int) (bool, bool) { return true, n < 3 }, func() {
		a.notice()
		time.Sleep(time.Hour)
	})
	require.Equal(t, []time.Duration{0, lookEvery + agentSettles, 2 * (lookEvery + agentSettles)}, looks)
}

// The agent may have changed while there was no session.
func TestAnAgentIsLookedAtWhenThereIsASessionAgain(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // so that no call is made
	for domain, want := range map[launcher.Domain]int{launcher.Running: 1, launcher.Paused: 1, launcher.Absent: 0, launcher.Gone: 0} {
		s := &Supervisor{config: Config{Logger: slog.New(slog.DiscardHandler)}, facts: newFacts(), agent: &agent{changed: make(chan struct{}, 1)}}
		s.facts.domain = domain
		s.connected(ctx, &libvirt.Connection{})
		require.Len(t, s.agent.changed, want, domain)
	}
}

func TestAGuestThatOpensAndClosesTheChannelCausesFewLooks(t *testing.T) {
	for name, known := range map[string]func(n int) (bool, bool){
		"and is seen open":   func(int) (bool, bool) { return true, true },
		"and is seen closed": func(int) (bool, bool) { return false, false },
		"in turns":           func(n int) (bool, bool) { return n%2 == 1, true },
	} {
		t.Run(name, func(t *testing.T) {
			a := &agent{}
			looks := followed(t, a, known, func() {
				for range 10 * 3600 {
					time.Sleep(100 * time.Millisecond)
					a.notice()
				}
			})
			require.LessOrEqual(t, len(looks), 60+looksAtOnce)
			require.Greater(t, len(looks), 50, "and it is looked at again")
		})
	}
}
