package controller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWhatWasDeletedIsNotDeletedAgainForAMinute(t *testing.T) {
	var d recent
	now := time.Unix(1_700_000_000, 0)
	require.False(t, d.has("a", now))
	d.note("a", now)
	require.True(t, d.has("a", now.Add(recentFor)))
	require.False(t, d.has("a", now.Add(recentFor+1)))
	d.note("b", now.Add(recentFor+1))
	require.Len(t, d.at, 1, "what is over is dropped")
}
