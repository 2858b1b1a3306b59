package protocol

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPathsAreThoseOfTheReleaseBefore(t *testing.T) {
	hello, moving := Target{"default", "hello", "6f1c", ""}, Target{"default", "hello", "6f1c", "0e3f 8a"}
	for want, p := range map[string]Path{
		"/v1/calls/pause":     {Call: CallPause},
		"/v1/streams/console": {Stream: StreamConsole},
		"/v1/namespaces/default/instances/hello/6f1c/calls/guestosinfo":                                   {Target: hello, Call: CallGuestOSInfo},
		"/v1/namespaces/default/instances/hello/6f1c/streams/screen-if-free":                              {Target: hello, Stream: StreamScreenIfFree},
		"/v1/namespaces/default/instances/hello/6f1c/calls/pause?pod=0e3f+8a":                             {Target: moving, Call: CallPause},
		"/v1/namespaces/default/instances/hello/6f1c/streams/migration-memory?migration=7a90&pod=0e3f+8a": {Target: moving, Stream: StreamMigrationMemory, Migration: "7a90"},
		"/v1/namespaces/a%2Fb/instances/c%3Fd/e%20f/calls/g%2Fh":                                          {Target: Target{"a/b", "c?d", "e f", ""}, Call: "g/h"},
	} {
		require.Equal(t, want, p.String())
		got, ok := ParsePath(want)
		require.True(t, ok, want)
		require.Equal(t, p, got)
	}
	require.Equal(t, "podvisor-stream", StreamUpgrade)
}

func TestAPathThatNamesNothingIsNotRead(t *testing.T) {
	for _, path := range []string{
		"", "/", "/v1", "/v1/calls", "/v1/calls/", "/v1/calls/pause/", "v1/calls/pause", "/v2/calls/pause", "/v1/call/pause", "//v1/calls/pause",
		"/v1/calls/%zz", "/v1/namespaces/default/instances/hello/calls/pause", "/v1/namespaces/default/instances/hello//calls/pause",
		"/v1/namespaces/default/pods/hello/6f1c/calls/pause", "/v1/namespaces/default/instances/hello/6f1c/calls/pause/now",
	} {
		got, ok := ParsePath(path)
		require.False(t, ok, path)
		require.Zero(t, got, path)
	}
}

func FuzzPath(f *testing.F) {
	f.Add("/v1/calls/pause")
	f.Add("/v1/namespaces/a%2Fb/instances/c/e%20f/streams/..")
	f.Fuzz(func(t *testing.T, path string) {
		p, ok := ParsePath(path)
		if !ok {
			return
		}
		again, ok := ParsePath(p.String())
		require.True(t, ok)
		require.Equal(t, p, again)
	})
}
