package network_test

import (
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/network/dhcp"
	"github.com/podvisor/podvisor/internal/network/link"
	"github.com/podvisor/podvisor/internal/network/networktest"
	"github.com/podvisor/podvisor/internal/network/nft"
	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
)

var resolver = dhcp.ParseResolvConf([]byte("nameserver 10.96.0.10\nsearch default.svc.cluster.local svc.cluster.local cluster.local\n"))

// bind binds the interfaces of a VMI in its pod and serves DHCP, as handler and
// launcher do.
func bind(t *testing.T, pod *os.File, v *vmi.VirtualMachineInstance) network.Config {
	t.Helper()
	cfg := bindLinks(t, pod, v)
	answer(t, pod, cfg)
	return cfg
}

// bindLinks binds the interfaces, as the handler does.
func bindLinks(t *testing.T, pod *os.File, v *vmi.VirtualMachineInstance) network.Config {
	t.Helper()
	require.NoError(t, link.Check(pod, nil))
	s, err := link.Observe(t.Context(), pod)
	require.NoError(t, err)
	if name := network.RoutedLink(v, nil); name != "" {
		require.NoError(t, link.FindRouter(t.Context(), pod, &s, name))
	}
	cfg, err := network.Plan(network.Input{Instance: v, State: s, Owner: network.Owner{UID: 107, GID: 107}, Links: networktest.Links(v)})
	require.NoError(t, err)
	err = nft.Apply(pod, cfg)
	testenv.Kernel(t, err, "nftables and NAT")
	require.NoError(t, err)
	err = link.Apply(t.Context(), pod, cfg)
	testenv.Kernel(t, err, "bridges and taps")
	require.NoError(t, err)
	return cfg
}

// answer answers the guest's questions for its configuration, as the launcher does.
func answer(t *testing.T, pod *os.File, cfg network.Config) {
	t.Helper()
	for _, a := range cfg.Attachments {
		if a.DHCP != nil {
			serve(t, pod, func(ctx context.Context) error { return dhcp.Server{Resolver: resolver}.Serve(ctx, *a.DHCP) })
		}
		if a.DHCP6 != nil {
			serve(t, pod, func(ctx context.Context) error { return dhcp.Server{Resolver: resolver}.Serve6(ctx, *a.DHCP6) })
		}
	}
}

// serve serves in the pod until the test ends.
func serve(t *testing.T, pod *os.File, f func(context.Context) error) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go networktest.In(t, pod, func() {
		defer close(ended)
		_ = f(ctx)
	})
	t.Cleanup(func() { stop(); <-ended })
}

// attempt is a connection that is tried, and what comes of it.
type attempt struct {
	name     string
	from     *os.File
	protocol string
	to       string
	// want is what the other end sends. Empty: there is no connection.
	want string
}

func (a attempt) check(t *testing.T) {
	t.Helper()
	ask := func() (string, error) { return networktest.Ask(t, a.from, a.protocol, a.to) }
	if a.want == "" {
		got, err := ask()
		require.Error(t, err, "%s: %s", a.name, got)
		return
	}
	got, err := repeated(ask)
	require.NoError(t, err, a.name)
	require.Equal(t, a.want, got, a.name)
}

// repeated repeats an attempt until it succeeds, for a minute: on a slow host something may be
// too late for one, or lost.
func repeated[T any](try func() (T, error)) (T, error) {
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		got, err := try()
		if err == nil || time.Now().After(end) {
			return got, err
		}
	}
}

func dial(t *testing.T, from *os.File, address string) net.Conn {
	t.Helper()
	c, err := repeated(func() (net.Conn, error) { return networktest.Dial(t, from, "tcp", address) })
	require.NoError(t, err, address)
	return c
}

func ping(t *testing.T, from *os.File, address string, options ...string) {
	t.Helper()
	args := append([]string{testenv.Program(t, "busybox"), "ping", "-c", "1", "-W", "2"}, append(options, address)...)
	out, err := repeated(func() (string, error) { return networktest.Try(t, from, args...) })
	require.NoError(t, err, out)
}

// arping asks for the MAC address of an address, up to count times, until mac answers, and
// returns all answers.
func arping(t *testing.T, from *os.File, count int, iface, address, mac string) (answers string) {
	t.Helper()
	_, err := repeated(func() (string, error) {
		out, err := networktest.Try(t, from, testenv.Program(t, "busybox"), "arping", "-c", strconv.Itoa(count), "-w", "5", "-I", iface, address)
		answers += out
		if err == nil && !strings.Contains(out, "["+mac+"]") {
			err = errors.New("another answers")
		}
		return out, err
	})
	require.NoError(t, err, answers)
	return answers
}

func TestMasquerade(t *testing.T) {
	pod, node := networktest.Pod(t)
	cfg := bind(t, pod, instance(masquerade))
	guest := networktest.Guest(t, pod, cfg.Attachments[0])
	require.Equal(t, `dns='10.96.0.10'
domain='default.svc.cluster.local'
hostname='hello'
ip='10.0.2.2'
lease='4294967295'
mask='24'
mtu='1450'
router='10.0.2.1'
search='default.svc.cluster.local svc.cluster.local cluster.local'
serverid='10.0.2.1'
subnet='255.255.255.0'
`, networktest.Lease(t, guest, "eth0"))
	ping(t, guest, "10.0.2.1")
	ping(t, guest, networktest.WorldAddress)
	ping(t, node, networktest.PodAddress)

	for _, protocol := range []string{"tcp", "udp"} {
		networktest.Listen(t, guest, "guest", protocol, "10.0.2.2:8080")
		networktest.Listen(t, node, "world", protocol, networktest.WorldAddress+":80")
	}
	for _, protocol := range []string{"tcp", "udp"} {
		for _, a := range []attempt{
			{"the world sees the pod's address", guest, protocol, networktest.WorldAddress + ":80", "world saw " + networktest.PodAddress},
			{"the guest sees who connects to the pod", node, protocol, networktest.PodAddress + ":8080", "guest saw " + networktest.NodeAddress},
			{"the guest answers on the pod's loopback", pod, protocol, "127.0.0.1:8080", "guest saw 10.0.2.1"},
			{"the guest answers the pod on its own address", pod, protocol, networktest.PodAddress + ":8080", "guest saw " + networktest.PodAddress},
			{"the guest reaches itself by the pod's address", guest, protocol, networktest.PodAddress + ":8080", "guest saw 10.0.2.1"},
		} {
			t.Run(a.name+" by "+protocol, a.check)
		}
	}
}

func TestMasqueradeForwardsOnlyThePortsOfTheSpec(t *testing.T) {
	pod, node := networktest.Pod(t)
	v := instance(masquerade)
	v.Spec.Domain.Devices.Interfaces[0].Ports = []vmi.Port{{Port: 8080}, {Port: 8081}, {Port: 53, Protocol: "UDP"}}
	cfg := bind(t, pod, v)
	guest := networktest.Guest(t, pod, cfg.Attachments[0])
	networktest.Lease(t, guest, "eth0")
	for _, port := range []string{"8080", "8081", "8082"} {
		networktest.Listen(t, guest, "guest", "tcp", "10.0.2.2:"+port)
	}
	networktest.Listen(t, guest, "guest", "udp", "10.0.2.2:53")
	for _, a := range []attempt{
		{"the first port", node, "tcp", networktest.PodAddress + ":8080", "guest saw " + networktest.NodeAddress},
		{"the second port", node, "tcp", networktest.PodAddress + ":8081", "guest saw " + networktest.NodeAddress},
		{"a port that is not listed", node, "tcp", networktest.PodAddress + ":8082", ""},
		{"the port of the other protocol", node, "udp", networktest.PodAddress + ":53", "guest saw " + networktest.NodeAddress},
		{"a port by the loopback", pod, "tcp", "127.0.0.1:8080", "guest saw 10.0.2.1"},
		{"a port by the loopback that is not listed", pod, "tcp", "127.0.0.1:8082", ""},
	} {
		t.Run(a.name, a.check)
	}
	ping(t, node, networktest.PodAddress)
}

func TestMasqueradeForwardsRangesOfPorts(t *testing.T) {
	pod, node := networktest.Pod(t)
	v := instance(masquerade)
	v.Spec.Domain.Devices.Interfaces[0].PortRanges = []vmi.PortRange{{Protocol: "TCP", Start: 8080, End: 8090}, {Protocol: "UDP", Start: 53, End: 53}}
	cfg := bind(t, pod, v)
	guest := networktest.Guest(t, pod, cfg.Attachments[0])
	networktest.Lease(t, guest, "eth0")
	for _, port := range []string{"8079", "8080", "8090", "8091"} {
		networktest.Listen(t, guest, "guest", "tcp", "10.0.2.2:"+port)
	}
	networktest.Listen(t, guest, "guest", "udp", "10.0.2.2:53")
	for _, a := range []attempt{
		{"the port before a range", node, "tcp", networktest.PodAddress + ":8079", ""},
		{"the first port", node, "tcp", networktest.PodAddress + ":8080", "guest saw " + networktest.NodeAddress},
		{"the last port", node, "tcp", networktest.PodAddress + ":8090", "guest saw " + networktest.NodeAddress},
		{"the port after a range", node, "tcp", networktest.PodAddress + ":8091", ""},
		{"a range of one", node, "udp", networktest.PodAddress + ":53", "guest saw " + networktest.NodeAddress},
	} {
		t.Run(a.name, a.check)
	}
}

func TestMasqueradeOfBothFamilies(t *testing.T) {
	pod, node := networktest.DualPod(t)
	cfg := bind(t, pod, instance(masquerade))
	guest := networktest.Guest(t, pod, cfg.Attachments[0])
	networktest.Lease(t, guest, "eth0")
	networktest.IP(t, guest, "addr add fd10:0:2::2/120 dev eth0 nodad")
	networktest.IP(t, guest, "route replace default via fd10:0:2::1")
	ping(t, guest, "fd10:0:2::1")
	ping(t, guest, networktest.WorldAddress6)
	ping(t, node, networktest.PodAddress6)
	networktest.Listen(t, guest, "guest", "tcp", ":8080")
	networktest.Listen(t, node, "world", "tcp", ":80")
	for _, a := range []attempt{
		{"IPv4 goes out", guest, "tcp", networktest.WorldAddress + ":80", "world saw " + networktest.PodAddress},
		{"IPv4 comes in", node, "tcp", networktest.PodAddress + ":8080", "guest saw " + networktest.NodeAddress},
		{"IPv6 goes out", guest, "tcp", "[" + networktest.WorldAddress6 + "]:80", "world saw " + networktest.PodAddress6},
		{"IPv6 comes in", node, "tcp", "[" + networktest.PodAddress6 + "]:8080", "guest saw " + networktest.NodeAddress6},
		{"IPv6 from the pod to its own address", pod, "tcp", "[" + networktest.PodAddress6 + "]:8080", "guest saw " + networktest.PodAddress6},
		{"the loopback of IPv6 stays in the pod", pod, "tcp", "[::1]:8080", ""},
		{"IPv6 from the guest to the pod's address", guest, "tcp", "[" + networktest.PodAddress6 + "]:8080", "guest saw fd10:0:2::1"},
	} {
		t.Run(a.name, a.check)
	}
}

func TestConnectionsSurviveBindingAgain(t *testing.T) {
	pod, node := networktest.Pod(t)
	v := instance(masquerade)
	cfg := bind(t, pod, v)
	guest := networktest.Guest(t, pod, cfg.Attachments[0])
	networktest.Lease(t, guest, "eth0")
	networktest.Listen(t, guest, "guest", "tcp", ":8080")
	c := dial(t, node, networktest.PodAddress+":8080")
	require.NoError(t, nft.Apply(pod, cfg))
	require.NoError(t, link.Apply(t.Context(), pod, cfg))
	_, err := c.Write([]byte("still there\n"))
	require.NoError(t, err)
	got := make([]byte, 100)
	n := 0
	for n < len("guest saw 10.244.0.1\nstill there\n") && err == nil {
		var m int
		m, err = c.Read(got[n:])
		n += m
	}
	require.NoError(t, err)
	require.Equal(t, "guest saw 10.244.0.1\nstill there\n", string(got[:n]))
}

func TestBridge(t *testing.T) {
	pod, node := networktest.Pod(t)
	cfg := bind(t, pod, instance(bridge))
	guest := networktest.Guest(t, pod, cfg.Attachments[0])
	require.Equal(t, `dns='10.96.0.10'
domain='default.svc.cluster.local'
hostname='hello'
ip='10.244.0.5'
lease='4294967295'
mask='24'
mtu='1450'
router='10.244.0.1'
search='default.svc.cluster.local svc.cluster.local cluster.local'
serverid='169.254.75.10'
subnet='255.255.255.0'
`, networktest.Lease(t, guest, "eth0"))
	ping(t, guest, networktest.WorldAddress)
	ping(t, node, networktest.PodAddress)
	networktest.Listen(t, guest, "guest", "tcp", ":8080")
	networktest.Listen(t, node, "world", "tcp", ":80")
	attempt{"the guest has the pod's address", guest, "tcp", networktest.WorldAddress + ":80", "world saw " + networktest.PodAddress}.check(t)
	attempt{"others reach the guest", node, "tcp", networktest.PodAddress + ":8080", "guest saw " + networktest.NodeAddress}.check(t)
	require.Contains(t, networktest.IP(t, node, "neigh show "+networktest.PodAddress), networktest.PodMAC, "the guest has the pod's MAC")

	// Without the guest no link answers for the address, also none of the pod.
	networktest.IP(t, guest, "link set eth0 down")
	out, err := networktest.Try(t, node, testenv.Program(t, "busybox"), "arping", "-D", "-c", "2", "-w", "2", "-I", "podlink", networktest.PodAddress)
	require.NoError(t, err, out)
}

func TestBridgeOfBothFamilies(t *testing.T) {
	pod, node := networktest.DualPod(t)
	cfg := bind(t, pod, instance(bridge))
	guest := networktest.Guest(t, pod, cfg.Attachments[0])
	networktest.Lease(t, guest, "eth0")
	networktest.IP(t, guest, "addr add "+networktest.PodAddress6+"/64 dev eth0")
	networktest.IP(t, guest, "route replace default via "+networktest.NodeAddress6)
	networktest.Listen(t, guest, "guest", "tcp", ":8080")
	// The address is the guest's when no other has answered its probe.
	ping(t, guest, networktest.WorldAddress6)
	attempt{"others reach the guest", node, "tcp", "[" + networktest.PodAddress6 + "]:8080", "guest saw " + networktest.NodeAddress6}.check(t)
	ping(t, guest, networktest.WorldAddress6, "-s", "4000")
	ping(t, guest, networktest.WorldAddress, "-s", "4000")
}

// A guest that makes up its link-local address cannot use that one, and needs it for
// nothing else.
func TestABridgedGuestWithALinkLocalAddressOfItsChoice(t *testing.T) {
	pod, node := networktest.DualPod(t)
	cfg := bind(t, pod, instance(bridge))
	guest := networktest.Guest(t, pod, cfg.Attachments[0])
	networktest.IP(t, guest, "-6 addr flush dev eth0")
	networktest.IP(t, guest, "addr add fe80::1234/64 dev eth0 nodad")
	networktest.IP(t, guest, "addr add "+networktest.PodAddress6+"/64 dev eth0 nodad")
	networktest.IP(t, guest, "route replace default via "+networktest.NodeAddress6)
	networktest.Listen(t, guest, "guest", "tcp", ":8080")
	require.Eventually(t, func() bool {
		got, err := networktest.Ask(t, node, "tcp", "["+networktest.PodAddress6+"]:8080")
		return err == nil && got == "guest saw "+networktest.NodeAddress6
	}, time.Minute, 10*time.Millisecond)
	ping(t, guest, networktest.WorldAddress6)
	networktest.IP(t, node, "neigh flush dev podlink")
	networktest.IP(t, guest, "neigh flush dev eth0")
	ping(t, node, networktest.PodAddress6)
	_, err := networktest.Try(t, guest, testenv.Program(t, "busybox"), "ping", "-c", "1", "-W", "1", "-I", "eth0", "fe80::858:aff:fef4:1")
	require.Error(t, err)
}

func TestBridgeWithAGatewayOutsideOfTheNetwork(t *testing.T) {
	pod, node := networktest.BarePod(t)
	networktest.IP(t, node, "addr add 169.254.1.1/32 dev podlink")
	networktest.IP(t, node, "route add "+networktest.PodAddress+"/32 dev podlink")
	networktest.IP(t, pod, "addr add "+networktest.PodAddress+"/32 dev eth0")
	networktest.IP(t, pod, "route add 169.254.1.1 dev eth0 scope link")
	networktest.IP(t, pod, "route add default via 169.254.1.1")
	cfg := bind(t, pod, instance(bridge))
	guest := networktest.Guest(t, pod, cfg.Attachments[0])
	offer := networktest.Lease(t, guest, "eth0")
	require.Contains(t, offer, "mask='32'\n")
	require.Contains(t, offer, "staticroutes='169.254.1.1/32 0.0.0.0 0.0.0.0/0 169.254.1.1'\n")
	ping(t, guest, networktest.WorldAddress)
	ping(t, node, networktest.PodAddress)
}
