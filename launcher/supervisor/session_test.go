package supervisor

import (
	"testing"
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
