package networktest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/network/networktest"
)

// A test makes a namespace, puts links into it, and reads what the kernel has then. It is
// compiled and not run here, since it needs root and a test.
func ExampleNamespace() {
	_ = func(t *testing.T) { // in a _test.go file: func TestABridgeForwardsNothing(t *testing.T)
		pod := networktest.Namespace(t)
		networktest.IP(t, pod, "link add br0 type bridge")
		networktest.IP(t, pod, "link set br0 up")
		networktest.In(t, pod, func() { /* the function that is tested */ })
		require.Equal(t, "0", networktest.Read(t, pod, "/proc/sys/net/ipv4/conf/br0/forwarding"))
	}
}
