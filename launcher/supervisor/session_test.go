package supervisor

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/launcher/process"
)

func TestTheDaemonIsDialledOftenAtFirstAndSeldomLater(t *testing.T) {
	dials := func(until time.Duration) (n int) {
		for at := time.Duration(0); at < until; at += dialDelay(at) {
			n++
		}
		return n
	}
	require.Equal(t, 25, dials(50*time.Millisecond), "a daemon that starts is found at once")
	require.Less(t, dials(time.Minute), 300)
	require.InDelta(t, 3600, dials(time.Hour)-dials(0), 300)
	for _, start := range []time.Duration{80 * time.Millisecond, time.Second, 8 * time.Second} {
		require.LessOrEqual(t, dialDelay(start), max(2*time.Millisecond, start/32), "the delay is a small part of the start")
	}
}

func TestADaemonThatDoesNotAnswerInTimeIsAnError(t *testing.T) {
	s := &Supervisor{daemon: process.NewDaemon(process.Config{}), session: &session{ready: make(chan struct{})}}
	_, err := s.connection(t.Context(), 0)
	require.ErrorContains(t, err, "wait for the libvirt daemon: no answer within 0s, its last output is \"\"")
}

func TestADaemonThatStopsToAnswerIsSaidBeforeItIsReplaced(t *testing.T) {
	const forever = time.Hour
	for name, tt := range map[string]struct {
		takes []time.Duration // of the answers
		want  []string
	}{
		"one that answers at once": {[]time.Duration{0, 0, 500 * time.Millisecond}, nil},
		"one that answers late":    {[]time.Duration{0, 20 * time.Second, 0}, []string{"11s: late since 10s", "30s: answered"}},
		"one that hangs":           {[]time.Duration{0, forever}, []string{"11s: late since 10s", "1m10s: hung"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var got []string
				note := func(what string) { got = append(got, time.Since(began).String()+": "+what) }
				s := &session{answers: time.Minute, hung: func() { note("hung") }, answered: func() { note("answered") },
					late: func(since time.Time) { note("late since " + since.Sub(began).String()) }}
				ctx, cancel := context.WithCancel(t.Context())
				asked := 0
				s.watch(ctx, func(ctx context.Context) error {
					if asked == len(tt.takes) {
						cancel()
						return ctx.Err()
					}
					asked++
					select {
					case <-time.After(tt.takes[asked-1]):
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				})
				cancel()
				require.Equal(t, tt.want, got)
			})
		})
	}
}
