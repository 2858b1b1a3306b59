package vm

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func TestTheContentOfARevisionHasSortedKeys(t *testing.T) {
	t.Parallel()
	v := vmitest.NewVM(vmi.RunAlways, vmitest.WithContainerDisk("root", "example/fedora:40"), vmitest.WithMemory("64Mi"))
	r, err := revision(v)
	require.NoError(t, err)
	var tree map[string]any
	require.NoError(t, json.Unmarshal(r.Data.Raw, &tree))
	again, err := json.Marshal(tree)
	require.NoError(t, err)
	require.Equal(t, string(again), string(r.Data.Raw))
	s, ok := startedFrom(r)
	require.True(t, ok)
	require.Equal(t, v.Spec, s)
}
