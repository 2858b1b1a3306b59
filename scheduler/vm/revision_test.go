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
	r, err := startRevision(v, v.Spec)
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

func TestTheContentOfARevisionIsTheSpecAsItIsStored(t *testing.T) {
	t.Parallel()
	v := vmitest.NewVM(vmi.RunAlways, vmitest.WithMemory("4096Ki"))
	r, err := startRevision(v, v.Spec)
	require.NoError(t, err)
	const spec = `{"runStrategy":"Always","template":{"spec":{"domain":{"devices":{},"memory":{"guest":"4096Ki"}}}}}`
	var stored map[string]any
	require.NoError(t, json.Unmarshal([]byte(spec), &stored))
	got, err := AsStored(r, stored)
	require.NoError(t, err)
	require.Equal(t, `{"spec":`+spec+`}`, string(got.Data.Raw))
	require.NotEqual(t, string(got.Data.Raw), string(r.Data.Raw), "the types do not keep the notation")
	got, err = AsStored(r, nil)
	require.NoError(t, err)
	require.Equal(t, r, got)
}
