package control

import (
	"context"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/launcher/protocol"
)

func requireReason(t *testing.T, err error, reason string) {
	t.Helper()
	var refused *Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, reason, refused.Reason)
}

func TestTheCallsOfMigrationsCarryTheXMLOfADomain(t *testing.T) {
	echo := func(_ context.Context, options []byte) (any, error) {
		return protocol.MigrationBegun{Cookie: options}, nil
	}
	_, c := serve(t, ServerConfig{Questions: map[protocol.Call]func(context.Context, []byte) (any, error){
		protocol.CallMigrationPrepare: echo, protocol.CallFreeze: echo,
	}})
	large := protocol.MigrationPrepare{MigrationBegun: protocol.MigrationBegun{XML: strings.Repeat("x", 4*protocol.MaxAnswer)}}
	var answer protocol.MigrationBegun
	require.NoError(t, c.Call(t.Context(), protocol.CallMigrationPrepare, large, &answer))
	require.Greater(t, len(answer.Cookie), 4*protocol.MaxAnswer)

	large.XML = strings.Repeat("x", protocol.MaxMigration)
	requireReason(t, c.Call(t.Context(), protocol.CallMigrationPrepare, large, nil), protocol.ReasonTooLarge)
	large.XML = strings.Repeat("x", protocol.MaxOptions)
	requireReason(t, c.Call(t.Context(), protocol.CallFreeze, large, nil), protocol.ReasonTooLarge)
}

func TestMigrationsHavePlacesOfTheirOwn(t *testing.T) {
	open := func(context.Context) (net.Conn, error) {
		near, far := net.Pipe()
		t.Cleanup(func() { _ = far.Close() })
		return near, nil
	}
	_, c := serve(t, ServerConfig{Streams: map[protocol.Stream]func(context.Context) (net.Conn, error){
		protocol.StreamConsole: open, protocol.StreamMigrationMemory: open, protocol.StreamMigrationDisks: open,
	}})
	take := func(name protocol.Stream, n int) {
		for range n {
			conn, err := c.Stream(t.Context(), name)
			require.NoError(t, err)
			t.Cleanup(func() { _ = conn.Close() })
		}
	}
	take(protocol.StreamConsole, mostStreams)
	take(protocol.StreamMigrationMemory, mostMoving-1)
	take(protocol.StreamMigrationDisks, 1)
	for _, name := range []protocol.Stream{protocol.StreamMigrationMemory, protocol.StreamConsole} {
		_, err := c.Stream(t.Context(), name)
		requireReason(t, err, protocol.ReasonBusy)
	}
}

func TestAStreamOfAMigrationMayTakeLongToOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := func(context.Context) (net.Conn, error) {
			near, far := net.Pipe()
			go func() { _, _ = far.Read(make([]byte, 1<<10)) }()
			return near, nil
		}
		opening := func(name protocol.Stream) time.Duration {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			began := time.Now()
			_, err := NewClient(silent).Stream(ctx, name)
			require.Error(t, err)
			return time.Since(began)
		}
		require.Equal(t, answerTimeout, opening(protocol.StreamConsole))
		require.Equal(t, time.Hour, opening(protocol.StreamMigrationMemory))
	})
}
