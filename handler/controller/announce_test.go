package controller

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// A guest that announced itself after it has moved would have its traffic sent to the source.
func TestAGuestIsAnnouncedUntilItsMigrationBegins(t *testing.T) {
	t.Parallel()
	m := newMoves(t, 8<<20, 1)
	m.source.binder = &binder{}
	holds := func() int {
		m.source.migrations.mu.Lock()
		defer m.source.migrations.mu.Unlock()
		return len(m.source.migrations.holds)
	}
	announce := func() error {
		return m.ask(m.source, "", protocol.CallMigrationAnnounce, protocol.MigrationStep{UID: migration})
	}
	require.NoError(t, announce())
	require.NoError(t, announce(), "it is repeated while the target comes up")
	require.Equal(t, 1, holds())
	requireReason(t, m.ask(m.target, "", protocol.CallMigrationAnnounce, protocol.MigrationStep{UID: migration}), vmi.RefusedNotFound)

	require.NoError(t, m.accept())
	require.NoError(t, m.start())
	require.Zero(t, holds(), "the target is silent from here on")
	require.NoError(t, announce(), "a call that comes late")
	require.Zero(t, holds())
	m.requireMoved()
	_ = announce() // it may be refused
	require.Zero(t, holds())
}
