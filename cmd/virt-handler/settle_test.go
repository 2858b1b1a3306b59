package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheHandlerStopsWhenItsMigrationsHaveEnded(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	asked, settled := make(chan struct{}), make(chan struct{})
	out, end := untilSettled(ctx, func(limited context.Context) {
		_, is := limited.Deadline()
		require.True(t, is)
		close(asked)
		<-settled
	})
	defer end()
	stop()
	<-asked
	require.NoError(t, out.Err(), "it goes on after SIGTERM")
	close(settled)
	<-out.Done()

	out, end = untilSettled(t.Context(), func(context.Context) { t.Error("it was not stopped") })
	end()
	<-out.Done()
}
