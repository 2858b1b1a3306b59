package libvirt

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestADaemonThatHangsIsNotAskedForEver(t *testing.T) {
	c := &Connection{calls: make(chan struct{}, atOnce)}
	answer := make(chan struct{})
	for range atOnce {
		ctx, cancel := context.WithCancel(t.Context())
		require.ErrorIs(t, c.do(ctx, func() error {
			cancel()
			<-answer
			return nil
		}), context.Canceled)
	}

	begun := 0
	count := func() error { begun++; return nil }
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, c.do(ctx, count), context.DeadlineExceeded)
	require.Zero(t, begun, "the daemon has as many calls as it works on")

	close(answer)
	require.NoError(t, c.do(t.Context(), count))
	require.Equal(t, 1, begun)
}
