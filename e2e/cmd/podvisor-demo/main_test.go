package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheDemoSaysFirstHowLongItTakesAndWhatItInstalls(t *testing.T) {
	cold := announcement(usual, []string{"kubernetes", "runtime"}, []string{"mount", "gcc", "mount"})
	require.Contains(t, cold, "takes about 20 minutes on two processors: it builds from source kubernetes, runtime.\n")
	require.Contains(t, cold, "installs the Debian packages gcc, mount, which stay.\n")
	require.Contains(t, cold, "`make demo-down` removes the cluster.")
	warm := announcement("mine", nil, nil)
	require.Contains(t, warm, "takes a few minutes: Kubernetes and the container runtime are built already.\n")
	require.Contains(t, warm, "It installs nothing.\n")
	require.Contains(t, warm, "`make demo-down CLUSTER=mine` removes the cluster.")
}
