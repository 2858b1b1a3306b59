package reconcile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestADeletionIsKeptUntilTheCacheHasIt(t *testing.T) {
	var d Deleted
	now := time.Unix(1_700_000_000, 0)
	require.False(t, d.Has("a"))
	d.Note("a", now)
	require.True(t, d.Has("a"))
	require.False(t, d.Has("b"))
	d.Note("b", now.Add(deletedFor+time.Second))
	require.False(t, d.Has("a"))
	require.True(t, d.Has("b"))
}
