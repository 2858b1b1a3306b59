package testenv

import (
	"errors"
	"math/rand/v2"
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Port is a port of 127.0.0.1 that no process listens on, for a program that is given the address
// to listen at. It is below those that the kernel chooses itself (ip_local_port_range, 32768 and
// more), so that none of them takes it before the program does.
func Port(t testing.TB) int {
	t.Helper()
	for {
		port := 20000 + rand.N(12000)
		l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		require.NoError(t, err)
		require.NoError(t, l.Close())
		return port
	}
}
