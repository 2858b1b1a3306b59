package controller

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/scheduler/pod"
)

func TestABuildIsNamedByItsProgramAndItsSettings(t *testing.T) {
	t.Parallel()
	first, err := build(pod.Launcher{Image: "a", Build: "before"})
	require.NoError(t, err)
	require.Len(t, first, 32)
	same, err := build(pod.Launcher{Image: "a"})
	require.NoError(t, err)
	require.Equal(t, first, same)
	for _, other := range []pod.Launcher{
		{Image: "b"}, {Image: "a", FullImage: "b"}, {Image: "a", ImagePullPolicy: "Always"}, {Image: "a", AllowEmulation: true},
		{Image: "a", ContainerDisks: pod.InitCopy}, {Image: "a", Architecture: "arm64"},
	} {
		got, err := build(other)
		require.NoError(t, err)
		require.NotEqual(t, first, got, "%+v", other)
	}
}

func TestALauncherIsCompletedByWhatIsDetected(t *testing.T) {
	t.Parallel()
	l, err := Detect(t.Context(), pod.Launcher{Image: "a"}, "auto", fixed{Major: "1", Minor: "34"})
	require.NoError(t, err)
	want, err := build(pod.Launcher{Image: "a", ContainerDisks: pod.InitCopy})
	require.NoError(t, err)
	require.Equal(t, pod.Launcher{Image: "a", ContainerDisks: pod.InitCopy, Build: want}, l)
	_, err = Detect(t.Context(), pod.Launcher{Image: "a"}, "floppy", fixed{})
	require.Error(t, err)
}
