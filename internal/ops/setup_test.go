package ops

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheLogFollowsTheVerbosity(t *testing.T) {
	var b bytes.Buffer
	log, level, err := Logger(&b, "warn")
	require.NoError(t, err)
	logged := func() bool {
		b.Reset()
		log.Info("x")
		return b.Len() > 0
	}
	require.False(t, logged())
	level.Follow(1)
	require.True(t, logged())
	level.Follow(3)
	require.True(t, log.Enabled(t.Context(), slog.LevelDebug))
	level.Follow(0)
	require.False(t, logged(), "the level is that of the flag")
}

func TestTheLimiterTakesNewLimits(t *testing.T) {
	l := NewLimiter()
	require.Equal(t, float32(requestsPerSecond), l.QPS())
	l.Set(1, 2)
	require.Equal(t, float32(1), l.QPS())
	for l.TryAccept() {
	}
	require.False(t, l.TryAccept())
	l.Set(1e6, 10)
	l.Accept()
	require.Equal(t, 10, l.Burst())
	l.Set(0, 0)
	require.Equal(t, float32(requestsPerSecond), l.QPS())
	require.Equal(t, requestsBurst, l.Burst())
	l.Stop()
}

// A VM costs virt-controller seven writes until it runs, and three events.
func TestTheLimitOfRequestsLetsMoreThanFiftyVMsStartInEachSecond(t *testing.T) {
	const each = 10
	l := NewLimiter()
	now := time.Now()
	require.True(t, l.AllowN(now, requestsBurst), "what may be sent at once")
	for second := range 5 {
		now = now.Add(time.Second)
		n := 0
		for l.AllowN(now, each) {
			n++
		}
		require.Greater(t, n, 50, "second %d", second)
	}
}
