package capability

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/config"
)

func TestSocketsToTheNodeAreOfferedWithTheirGateOnly(t *testing.T) {
	t.Parallel()
	var on config.Config
	on.Limits.Features.VSOCK = true
	require.False(t, Offered(vmi.VhostVSOCKResource, config.Config{}))
	require.True(t, Offered(vmi.VhostVSOCKResource, on))
	for _, always := range []string{vmi.KVMResource, vmi.TunResource, vmi.VhostNetResource} {
		require.True(t, Offered(always, config.Config{}), always)
	}
}
