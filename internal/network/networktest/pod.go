package networktest

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

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
	// WorldAddress is an address beyond the pod's gateway.
	WorldAddress  = "192.0.2.1"
	WorldAddress6 = "2001:db8::1"
	PodMTU        = 1450
)

// Pod makes the namespaces of a pod and of its node, with a veth pair between
// them as a bridge CNI plugin leaves it: eth0 in the pod, with PodAddress/24, and
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
	attach(t, pod, node)
	return pod, node
}

// MacvlanPod is [Pod] with a macvlan link, on a bridge of the node that has the gateway's
// address.
func MacvlanPod(t testing.TB) (pod, node *os.File) {
	t.Helper()
	pod, node = Namespace(t), Namespace(t)
	IP(t, node, fmt.Sprintf("link add podlink address 0a:58:0a:f4:00:01 mtu %d type bridge", PodMTU))
	IP(t, node, "addr add "+NodeAddress+"/24 dev podlink")
	IP(t, node, "link set podlink up")
	IP(t, node, "link add link podlink name eth0 address "+PodMAC+" type macvlan mode bridge")
	IP(t, node, fmt.Sprintf("link set eth0 netns /proc/%d/fd/%d", os.Getpid(), pod.Fd()))
	IP(t, pod, "link set eth0 up")
	address(t, pod)
	return pod, node
}

// farIndex is the index of the far end of a pod's link, which is never the index of the
// pod's end, as on a node. Of a link whose peer has the link's own index, the kernel
// handles changes up to a second late (linkwatch_urgent_event in net/core/link_watch.c).
const farIndex = 1000

// attach makes the veth pair between a pod and its node.
func attach(t testing.TB, pod, node *os.File) {
	t.Helper()
	IP(t, node, fmt.Sprintf("link add podlink index %d address 0a:58:0a:f4:00:01 mtu %d type veth peer name eth0 address %s mtu %d netns /proc/%d/fd/%d",
		farIndex, PodMTU, PodMAC, PodMTU, os.Getpid(), pod.Fd()))
	IP(t, node, "addr add "+NodeAddress+"/24 dev podlink")
	IP(t, node, "addr add "+WorldAddress+"/32 dev lo")
	IP(t, node, "link set podlink up")
	IP(t, pod, "link set eth0 up")
}

// SecondaryMAC is the MAC address of the pod's link to the secondary network of
// this number.
func SecondaryMAC(number int) string { return fmt.Sprintf("0a:58:0a:64:%02x:05", number) }

// SecondaryGateway is the address at the other end of the network.
func SecondaryGateway(number int) string { return fmt.Sprintf("10.100.%d.1", number) }

// SecondaryAddress is an address of the network for the pod.
func SecondaryAddress(number int) string { return fmt.Sprintf("10.100.%d.5", number) }

// Attach attaches the pod to a secondary network as a CNI plugin does: it adds a
// link of that name, with these addresses, and returns the namespace at the other
// end of the network, where the link lan has SecondaryGateway/24.
func Attach(t testing.TB, pod *os.File, link string, number int, addresses ...string) *os.File {
	t.Helper()
	lan := Namespace(t)
	IP(t, lan, fmt.Sprintf("link add lan index %d address 0a:58:0a:64:%02x:01 mtu %d type veth peer name %s address %s mtu %d netns /proc/%d/fd/%d",
		farIndex, number, PodMTU, link, SecondaryMAC(number), PodMTU, os.Getpid(), pod.Fd()))
	IP(t, lan, "addr add "+SecondaryGateway(number)+"/24 dev lan")
	IP(t, lan, "link set lan up")
	for _, a := range addresses {
		IP(t, pod, "addr add "+a+" dev "+link+" nodad")
	}
	IP(t, pod, "link set "+link+" up")
	return lan
}

// UserPod is [DualPod] with a pod that has a user namespace of its own, in which
// the IDs begin with first, and a process that is in both namespaces until the test ends,
// as a descriptor.
func UserPod(t testing.TB, first int) (pod, node, process *os.File) {
	t.Helper()
	testenv.Root(t)
	ids := []syscall.SysProcIDMap{{HostID: first, Size: 1 << 16}}
	c := exec.CommandContext(t.Context(), testenv.Program(t, "sleep"), "infinity")
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET, UidMappings: ids, GidMappings: ids}
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	pod, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", c.Process.Pid))
	require.NoError(t, err)
	process = Process(t, c.Process.Pid)
	t.Cleanup(func() { pod.Close() })
	node = Namespace(t)
	IP(t, pod, "link set lo up")
	attach(t, pod, node)
	address(t, pod)
	address6(t, pod, node)
	return pod, node, process
}

// Process is a descriptor of a process, until the test ends.
func Process(t testing.TB, pid int) *os.File {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	require.NoError(t, err)
	f := os.NewFile(uintptr(fd), "process")
	t.Cleanup(func() { f.Close() })
	return f
}
