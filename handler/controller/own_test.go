package controller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/vmi"
)

func TestAWriteIsNotMadeFromACacheThatIsBehind(t *testing.T) {
	t.Parallel()
	at := func(version string) *vmi.VirtualMachineInstance {
		v := &vmi.VirtualMachineInstance{}
		v.UID, v.ResourceVersion = "u", version
		return v
	}
	s := newSession(podUID, nil, timing{now: time.Now}, func() {})
	s.wrote("1", at("2"))
	s.wrote("2", at("3"))
	require.Equal(t, "3", s.newest(at("1")).ResourceVersion)
	require.Equal(t, "3", s.newest(at("2")).ResourceVersion)
	require.Equal(t, "3", s.newest(at("3")).ResourceVersion)
	require.Nil(t, s.written, "nothing is kept when the cache has caught up")
	s.wrote("3", at("4"))
	require.Equal(t, "5", s.newest(at("5")).ResourceVersion, "another write")
	s.wrote("5", at("6"))
	other := at("5")
	other.UID = "another"
	require.Equal(t, other, s.newest(other))
	require.Nil(t, s.newest(nil))
}
