package networktest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/network/networktest"
)

func TestACaptureWithoutTCPHasAllElse(t *testing.T) {
	ns := networktest.Namespace(t)
	all, some := networktest.Watch(t, ns, "lo"), networktest.WatchAllButTCP(t, ns, "lo")
	for _, address := range []string{"127.0.0.1:7000", "[::1]:7000"} {
		for _, protocol := range []string{"tcp", "udp"} {
			name := protocol + " of " + address
			networktest.Listen(t, ns, name, protocol, address)
			_, err := networktest.Ask(t, ns, protocol, address)
			require.NoError(t, err)
			require.True(t, all.Await([]byte(name)))
			if protocol == "udp" {
				require.True(t, some.Await([]byte(name)))
			}
		}
	}
	require.False(t, some.Has([]byte("tcp of ")))
}
