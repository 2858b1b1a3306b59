package protocol

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/vmi/verb"
)

// The verbs of users call launchers by these names, and open streams by them.
func TestTheVerbsOfUsersHaveTheNamesOfCallsAndStreams(t *testing.T) {
	for _, c := range []Call{CallPause, CallUnpause, CallReset, CallSoftReboot, CallFreeze, CallUnfreeze, CallGuestOSInfo, CallUserList, CallFileSystemList} {
		_, ok := verb.Find(verb.VMIs, string(c))
		require.True(t, ok, c)
	}
	require.Equal(t, []Stream{StreamConsole, StreamScreen, StreamScreenIfFree, StreamScreenshot}, []Stream{verb.Console, verb.Screen, verb.ScreenIfFree, verb.Screenshot})
}
