package controller

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/scheduler/pod"
)

func TestABuildIsNamedByItsProgramAndItsSettings(t *testing.T) {
	t.Parallel()
	first, err := Build(pod.Launcher{Image: "a", Build: "before"})
	require.NoError(t, err)
	require.Len(t, first, 32)
	same, err := Build(pod.Launcher{Image: "a"})
	require.NoError(t, err)
	require.Equal(t, first, same)
	for _, other := range []pod.Launcher{
		{Image: "b"}, {Image: "a", FullImage: "b"}, {Image: "a", ImagePullPolicy: "Always"}, {Image: "a", AllowEmulation: true},
		{Image: "a", ContainerDisks: pod.InitCopy}, {Image: "a", Architecture: "arm64"},
	} {
		got, err := Build(other)
		require.NoError(t, err)
		require.NotEqual(t, first, got, "%+v", other)
	}
}
