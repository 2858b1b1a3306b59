package protocol_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/launcher/protocol"
)

func TestAPortIsInTheNameOfItsStream(t *testing.T) {
	for name, tt := range map[protocol.Stream]struct {
		network string
		port    uint16
	}{
		"port-tcp-22": {"tcp", 22}, "port-udp-65535": {"udp", 65535}, "port-tcp-1": {"tcp", 1},
	} {
		network, port, ok := name.Port()
		require.True(t, ok, name)
		require.Equal(t, tt.network, network)
		require.Equal(t, tt.port, port)
		require.Equal(t, name, protocol.PortStream(network, port))
	}
	for _, name := range []protocol.Stream{"console", "port-", "port-tcp", "port-tcp-", "port-tcp-0", "port-tcp-022", "port-tcp-65536", "port-tcp--1", "port-tcp-+1", "port-tcp-22-", "port-unix-22", "port-tcp4-22", "PORT-tcp-22", "port-tcp-22 "} {
		_, _, ok := name.Port()
		require.False(t, ok, name)
	}
}
