package forward_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/internal/launcher/forward"
	"github.com/podvisor/podvisor/internal/network/link"
	"github.com/podvisor/podvisor/internal/network/networktest"
	"github.com/podvisor/podvisor/internal/network/nft"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// soon is how long anything may take on a host that is busy.
const soon = time.Minute

func masqueraded(ports ...vmi.Port) *vmi.VirtualMachineInstance {
	return vmitest.New(vmitest.WithMasquerade("default", ports...))
}

func bridged() *vmi.VirtualMachineInstance { return vmitest.New(vmitest.WithBridge("default")) }

// bind binds the interface in the pod as the handler does, and makes a guest with its address.
func bind(t *testing.T, pod *os.File, v *vmi.VirtualMachineInstance) (network.Way, *os.File) {
	t.Helper()
	s, err := link.Observe(t.Context(), pod)
	require.NoError(t, err)
	cfg, err := network.Plan(network.Input{Instance: v, State: s, Owner: network.Owner{UID: 107, GID: 107}, Links: networktest.Links(v)})
	require.NoError(t, err)
	require.NoError(t, nft.Apply(pod, cfg))
	require.NoError(t, link.Apply(t.Context(), pod, cfg))
	way := network.WayOf(cfg.Attachments)
	require.NotNil(t, way)
	guest := networktest.Guest(t, pod, cfg.Attachments[0])
	if o := cfg.Attachments[0].DHCP; o != nil {
		networktest.IP(t, guest, "addr add "+o.Address.String()+" dev eth0")
		networktest.IP(t, guest, "route add default via "+o.Router.String())
		return *way, guest
	}
	o := cfg.Attachments[0].DHCP6
	networktest.IP(t, guest, "addr add "+o.Address.String()+" dev eth0 nodad")
	return *way, guest
}

// unprivileged calls f on a thread that has no capability, as the launcher has none.
func unprivileged(t *testing.T, f func()) {
	t.Helper()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var had, none [2]unix.CapUserData
	require.NoError(t, unix.Capget(&header, &had[0]))
	none = had
	none[0].Effective, none[1].Effective = 0, 0
	require.NoError(t, unix.Capset(&header, &none[0]))
	defer func() { require.NoError(t, unix.Capset(&header, &had[0])) }()
	f()
}

// dial connects in the pod.
func dial(t *testing.T, pod *os.File, w network.Way, protocol string, port uint16) (c net.Conn, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	networktest.In(t, pod, func() { // on a thread of its own
		unprivileged(t, func() { c, err = forward.Dial(ctx, w, protocol, port) })
	})
	if err == nil {
		t.Cleanup(func() { _ = c.Close() })
		require.NoError(t, c.SetDeadline(time.Now().Add(soon)))
	}
	return c, err
}

// greeted is the line that what listens at the port sends first.
func greeted(t *testing.T, pod *os.File, w network.Way, protocol string, port uint16) string {
	t.Helper()
	c, err := dial(t, pod, w, protocol, port)
	require.NoError(t, err)
	if protocol == "udp" {
		_, err := c.Write([]byte{0, 1, '?'})
		require.NoError(t, err)
		var length [2]byte
		_, err = io.ReadFull(c, length[:])
		require.NoError(t, err)
		b := make([]byte, binary.BigEndian.Uint16(length[:]))
		_, err = io.ReadFull(c, b)
		require.NoError(t, err)
		return strings.TrimSpace(string(b))
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(line)
}

func TestAPortOfTheGuestIsReached(t *testing.T) {
	for name, tt := range map[string]struct {
		v    *vmi.VirtualMachineInstance
		want string
	}{
		"masquerade": {masqueraded(), "guest saw 10.0.2.1"},
		"bridge":     {bridged(), "guest saw 169.254.75.10"},
	} {
		t.Run(name, func(t *testing.T) {
			pod, _ := networktest.Pod(t)
			way, guest := bind(t, pod, tt.v)
			for _, protocol := range []string{"tcp", "udp"} {
				networktest.Listen(t, guest, "guest", protocol, way.To.String()+":8080")
				require.Equal(t, tt.want, greeted(t, pod, way, protocol, 8080), protocol)
			}
			_, err := dial(t, pod, way, "tcp", 81)
			require.ErrorContains(t, err, "connection refused")
		})
	}
}

func TestAPortOfAGuestWithIPv6AloneIsReached(t *testing.T) {
	pod, _ := networktest.BarePod(t)
	networktest.IP(t, pod, "addr add "+networktest.PodAddress6+"/64 dev eth0 nodad")
	way, guest := bind(t, pod, masqueraded())
	networktest.Listen(t, guest, "guest", "tcp", "[fd10:0:2::2]:8080")
	require.Eventually(t, func() bool {
		_, err := dial(t, pod, way, "tcp", 8080)
		return err == nil
	}, soon, 10*time.Millisecond)
}

func TestOnlyThePortsOfTheSpecAreReached(t *testing.T) {
	pod, _ := networktest.Pod(t)
	way, guest := bind(t, pod, masqueraded(vmi.Port{Port: 8080}, vmi.Port{Port: 53, Protocol: "UDP"}))
	networktest.Listen(t, guest, "guest", "tcp", "10.0.2.2:8080")
	networktest.Listen(t, guest, "guest", "tcp", "10.0.2.2:8081")
	require.Equal(t, "guest saw 10.0.2.1", greeted(t, pod, way, "tcp", 8080))
	for _, refused := range []struct {
		protocol string
		port     uint16
	}{{"tcp", 8081}, {"tcp", 53}, {"udp", 8080}} {
		_, err := dial(t, pod, way, refused.protocol, refused.port)
		require.ErrorContains(t, err, "connection refused: port ")
		require.ErrorContains(t, err, "is none of the ports that the spec lists")
	}
	_, err := dial(t, pod, way, "unix", 8080)
	require.ErrorContains(t, err, "neither tcp nor udp")
}

// A tenant chooses the address of the pod, by a network attachment of its own: here that of
// the node, on which the kubelet would listen.
func TestAttackAPodWithTheAddressOfItsNodeIsNoWayToTheNode(t *testing.T) {
	for name, v := range map[string]*vmi.VirtualMachineInstance{"masquerade": masqueraded(), "bridge": bridged()} {
		t.Run(name, func(t *testing.T) {
			pod, node := networktest.BarePod(t)
			networktest.IP(t, pod, "addr add "+networktest.NodeAddress+"/24 dev eth0")
			networktest.IP(t, pod, "route add default via 10.244.0.9")
			way, guest := bind(t, pod, v)
			for _, protocol := range []string{"tcp", "udp"} {
				networktest.Listen(t, node, "kubelet", protocol, networktest.NodeAddress+":10250")
				networktest.Listen(t, pod, "pod", protocol, ":10250")
			}
			_, err := dial(t, pod, way, "tcp", 10250)
			require.Error(t, err, "neither the node nor the pod itself answers")
			if v.Spec.Domain.Devices.Interfaces[0].Bridge != nil { // a router, which would not answer a guest with that address
				networktest.IP(t, guest, "neigh replace 10.244.0.9 lladdr 0a:58:0a:f4:00:09 dev eth0")
			}
			networktest.Listen(t, guest, "guest", "tcp", ":10250")
			require.Contains(t, greeted(t, pod, way, "tcp", 10250), "guest saw ")
		})
	}
}

// Without the guest nothing answers for its address: no question for it leaves the pod.
func TestAttackAWayLeavesThePodByTheGuestAlone(t *testing.T) {
	pod, node := networktest.Pod(t)
	way, guest := bind(t, pod, bridged())
	networktest.IP(t, guest, "link set eth0 down")
	networktest.IP(t, node, "addr add "+networktest.PodAddress+"/32 dev podlink")
	networktest.IP(t, node, "addr add 169.254.75.11/24 dev podlink")
	networktest.Listen(t, node, "node", "tcp", ":8080")
	_, err := dial(t, pod, way, "tcp", 8080)
	require.Error(t, err)
}

// A guest that has the pod's address reaches nothing of the pod by the address that the pod
// connects from.
func TestAttackTheGuestConnectsToNothingOfItsPod(t *testing.T) {
	pod, _ := networktest.Pod(t)
	way, guest := bind(t, pod, bridged())
	for _, protocol := range []string{"tcp", "udp"} {
		networktest.Listen(t, pod, "pod", protocol, ":8080")
	}
	networktest.Listen(t, guest, "guest", "tcp", ":22")
	require.Equal(t, "guest saw "+way.From.String(), greeted(t, pod, way, "tcp", 22), "answers come")
	for _, on := range []string{"", way.From.String() + "/32 dev eth0"} {
		if on != "" { // asked for on the link, as a guest does with a route for link-local addresses
			networktest.IP(t, guest, "route add "+on)
		}
		for _, protocol := range []string{"tcp", "udp"} {
			got, err := networktest.Ask(t, guest, protocol, way.From.String()+":8080")
			require.Error(t, err, got)
		}
		require.Equal(t, "guest saw "+way.From.String(), greeted(t, pod, way, "tcp", 22), "answers come")
	}
}
