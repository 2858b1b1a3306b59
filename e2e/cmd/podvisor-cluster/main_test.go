package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/e2e/cluster"
)

func TestRun(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", filepath.Join(t.TempDir(), "cache"))
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"an unknown command is named", []string{"nonsense"}, `unknown command "nonsense"`},
		{"a name that cannot be one is refused", []string{"status", "--name", "No"}, `invalid cluster name "No"`},
		{"load needs an archive", []string{"load"}, "load needs the path of an image archive"},
		{"process 1 is not for people", []string{"init"}, "init takes a folder and an id"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.ErrorContains(t, run(t.Context(), tt.args), tt.want)
		})
	}
	for _, command := range []string{"status", "kubectl", "load"} {
		t.Run(command+" of a cluster that is not there says so", func(t *testing.T) {
			require.ErrorIs(t, run(t.Context(), []string{command, "x.tar"}), cluster.ErrNotFound)
		})
	}
	t.Run("there is nothing to list", func(t *testing.T) {
		require.NoError(t, run(t.Context(), []string{"list"}))
	})
}
