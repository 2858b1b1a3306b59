package controller

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/version"

	"github.com/podvisor/podvisor/scheduler/pod"
)

type fixed version.Info

func (f fixed) ServerVersion() (*version.Info, error) { v := version.Info(f); return &v, nil }

func TestContainerDisks(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, wanted, major, minor string
		want                       pod.ContainerDisks
	}{
		{"a cluster that has image volumes", "auto", "1", "35", pod.ImageVolume},
		{"the empty string is auto", "", "1", "37", pod.ImageVolume},
		{"a provider's sign behind the version", "auto", "1", "35+", pod.ImageVolume},
		{"a cluster without image volumes", "auto", "1", "34", pod.InitCopy},
		{"a version that is no number", "auto", "1", "next", pod.InitCopy},
		{"image volumes where the administrator wants them", "image-volume", "1", "31", pod.ImageVolume},
		{"copies where the administrator wants them", "init-copy", "1", "37", pod.InitCopy},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := containerDisks(t.Context(), tt.wanted, fixed{Major: tt.major, Minor: tt.minor})
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
	_, err := containerDisks(t.Context(), "floppy", fixed{})
	require.ErrorContains(t, err, "must be auto, image-volume or init-copy")
}
