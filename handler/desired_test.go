package handler

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// A launcher takes the label for the word that another pod of the VMI may be ready.
func TestALauncherSeesAMoveToItsOwnNodeOnly(t *testing.T) {
	t.Parallel()
	for to, want := range map[string]map[string]string{
		"":   {"app": "web"},
		node: {"app": "web", vmi.MigrationTargetNodeLabel: node},
		"n2": {"app": "web"},
	} {
		v := vmitest.New(vmitest.WithLabel("app", "web"))
		if to != "" {
			v.Labels[vmi.MigrationTargetNodeLabel] = to
		}
		before := v.DeepCopy()
		require.Equal(t, want, forLauncher(v, node).Labels, to)
		require.Equal(t, before, v)
	}
}
