package networktest

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/testenv"
)

// The addresses that [Pod] gives.
const (
	PodMAC      = "0a:58:0a:f4:00:05"
	PodAddress  = "10.244.0.5"
	PodAddress6 = "fd00:244::5"
	// NodeAddress is the pod's gateway.
	NodeAddress  = "10.244.0.1"
	NodeAddress6 = "fd00:244::1"
	// WorldAddress is an address that the pod reaches only by its gateway.
	WorldAddress  = "192.0.2.1"
	WorldAddress6 = "2001:db8::1"
	PodMTU        = 1450
)

// Pod makes the namespaces of a pod and of its node, connected by a veth pair as
// a bridge CNI plugin would leave it: eth0 in the pod, with PodAddress/24, and
// podlink in the node.
func Pod(t testing.TB) (pod, node *os.File) {
	t.Helper()
	pod, node = BarePod(t)
	address(t, pod)
	return pod, node
}

func address(t testing.TB, pod *os.File) {
	t.Helper()
	IP(t, pod, "addr add "+PodAddress+"/24 dev eth0")
	IP(t, pod, "route add default via "+NodeAddress)
}

// DualPod is [Pod] with IPv6 addresses too.
func DualPod(t testing.TB) (pod, node *os.File) {
	t.Helper()
	pod, node = Pod(t)
	address6(t, pod, node)
	return pod, node
}

func address6(t testing.TB, pod, node *os.File) {
	t.Helper()
	IP(t, node, "addr add "+NodeAddress6+"/64 dev podlink nodad")
	IP(t, node, "addr add "+WorldAddress6+"/128 dev lo nodad")
	IP(t, pod, "addr add "+PodAddress6+"/64 dev eth0 nodad")
	IP(t, pod, "route add default via "+NodeAddress6)
}

// BarePod is [Pod] without addresses and routes in the pod.
func BarePod(t testing.TB) (pod, node *os.File) {
	t.Helper()
	pod, node = Namespace(t), Namespace(t)
	connect(t, pod, node)
	return pod, node
}

// connect makes the veth pair between a pod and its node.
func connect(t testing.TB, pod, node *os.File) {
	t.Helper()
	IP(t, node, fmt.Sprintf("link add podlink address 0a:58:0a:f4:00:01 mtu %d type veth peer name eth0 address %s mtu %d netns /proc/%d/fd/%d",
		PodMTU, PodMAC, PodMTU, os.Getpid(), pod.Fd()))
	IP(t, node, "addr add "+NodeAddress+"/24 dev podlink")
	IP(t, node, "addr add "+WorldAddress+"/32 dev lo")
	IP(t, node, "link set podlink up")
	IP(t, pod, "link set eth0 up")
}

// UserPod is [DualPod] with a pod that has a user namespace of its own, in which
// the IDs begin with first.
func UserPod(t testing.TB, first int) (pod, node *os.File) {
	t.Helper()
	testenv.Root(t)
	ids := []syscall.SysProcIDMap{{HostID: first, Size: 1 << 16}}
	c := exec.CommandContext(t.Context(), testenv.Program(t, "sleep"), "infinity")
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET, UidMappings: ids, GidMappings: ids}
	require.NoError(t, c.Start())
	pod, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", c.Process.Pid))
	// The open file keeps the namespace.
	require.NoError(t, c.Process.Kill())
	_ = c.Wait()
	require.NoError(t, err)
	t.Cleanup(func() { pod.Close() })
	node = Namespace(t)
	IP(t, pod, "link set lo up")
	connect(t, pod, node)
	address(t, pod)
	address6(t, pod, node)
	return pod, node
}
