package network_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/internal/network/link"
	"github.com/podvisor/podvisor/internal/network/networktest"
	"github.com/podvisor/podvisor/internal/network/nft"
	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
)

// The guest of a VMI on a secondary network moves from one pod to another on it. The
// network's bridge and the neighbours learn where it is before it sends anything.
func TestANetworkLearnsWhereAGuestHasMoved(t *testing.T) {
	const guestMAC, own4, own6 = "02:00:00:00:77:01", "192.0.2.10", "2001:db8:77::10"
	lan := networktest.Namespace(t)
	networktest.IP(t, lan, "link add segment type bridge mcast_snooping 0")
	networktest.IP(t, lan, "addr add 192.0.2.1/24 dev segment")
	networktest.IP(t, lan, "addr add 2001:db8:77::1/64 dev segment nodad")
	networktest.IP(t, lan, "link set segment up")
	v := instance(masquerade, bridge)
	v.Spec.Domain.Devices.Interfaces[1].MacAddress = guestMAC
	var pods []*os.File
	var configs []network.Config
	for n, port := range []string{"source", "target"} {
		pod, _ := networktest.Pod(t)
		networktest.IP(t, lan, fmt.Sprintf("link add %s type veth peer name %s address %s mtu %d netns /proc/%d/fd/%d",
			port, networktest.Links(v)["lan1"], networktest.SecondaryMAC(n+1), networktest.PodMTU, os.Getpid(), pod.Fd()))
		networktest.IP(t, lan, "link set "+port+" master segment up")
		networktest.IP(t, pod, "link set "+networktest.Links(v)["lan1"]+" up")
		pods, configs = append(pods, pod), append(configs, bind(t, pod, v))
	}
	reported := []vmi.InterfaceStatus{{MAC: guestMAC, IPs: []string{own4, own6}}}
	// What is known before: the port of the source, and of the addresses something wrong.
	networktest.Run(t, lan, testenv.Program(t, "bridge"), "fdb", "replace", guestMAC, "dev", "source", "master", "dynamic")
	for _, a := range []string{own4, own6} {
		networktest.IP(t, lan, "neigh replace "+a+" lladdr 02:00:00:00:99:99 dev segment nud stale")
	}
	onWire := networktest.Watch(t, lan, "target")
	// The guest gets nothing of it: an announcement of its own address looks like a second
	// owner to it.
	inGuest := networktest.OpenTap(t, pods[1], configs[1].Attachments[1].Tap)
	require.NoError(t, link.Announce(t.Context(), pods[1], configs[1], reported))

	fdb := networktest.Run(t, lan, testenv.Program(t, "bridge"), "fdb", "show", "br", "segment")
	require.Contains(t, fdb, guestMAC+" dev target master segment", "the bridge has learnt the port")
	require.NotContains(t, fdb, guestMAC+" dev source")
	for _, a := range []string{own4, own6} {
		require.Contains(t, networktest.Run(t, lan, testenv.Program(t, "ip"), "neigh", "show", a), "lladdr "+guestMAC, "the neighbour has learnt the MAC address of %s", a)
	}
	rarp := strings.Repeat("\xff", 6) + string(hardware(guestMAC)) + "\x80\x35"
	require.Eventually(t, func() bool { return onWire.Count([]byte(rarp)) == 5 }, time.Minute, time.Millisecond)
	require.NoError(t, inGuest.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
	for b := make([]byte, 1<<16); ; {
		n, err := inGuest.Read(b)
		if err != nil {
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			break
		}
		require.NotContains(t, string(b[:n]), string(hardware(guestMAC)), "the guest gets its own announcement")
	}

	// The frames of QEMU itself, which has no addresses, do not pass the filters.
	onWire.Forget()
	frame := append(make([]byte, networktest.HeaderLength), ethernet(broadcast, guestMAC, 0x8035, arp(3, guestMAC, "0.0.0.0", "0.0.0.0"))...)
	_, err := inGuest.Write(frame)
	require.NoError(t, err)
	time.Sleep(200 * time.Millisecond)
	require.False(t, onWire.Has([]byte(rarp)))

	state, err := link.Observe(t.Context(), pods[1])
	require.NoError(t, err)
	for _, l := range state.Links {
		require.NotContains(t, l.Name, "send", "the device that the frames were sent by is gone")
	}
}

// The pod that a guest moves to comes up on the network with the guest's MAC address, and its
// kernel sends from it. What is for the guest goes to the guest nevertheless.
func TestANetworkSendsToAGuestWhoseTargetComesUp(t *testing.T) {
	const guestMAC = "02:00:00:00:77:01"
	lan := networktest.Namespace(t)
	networktest.IP(t, lan, "link add segment type bridge mcast_snooping 0")
	networktest.IP(t, lan, "link set segment up")
	v := instance(masquerade, bridge)
	v.Spec.Domain.Devices.Interfaces[1].MacAddress = guestMAC
	name := networktest.Links(v)["lan1"]
	up := func(pod *os.File, port, mac string) {
		networktest.IP(t, lan, fmt.Sprintf("link add %s type veth peer name %s address %s mtu %d netns /proc/%d/fd/%d", port, name, mac, networktest.PodMTU, os.Getpid(), pod.Fd()))
		networktest.IP(t, lan, "link set "+port+" master segment up")
		networktest.IP(t, pod, "link set "+name+" up")
		// The kernel gives no address to a port that does not forward yet.
		require.Eventually(t, func() bool {
			return strings.Contains(networktest.Run(t, lan, testenv.Program(t, "bridge"), "link", "show", "dev", port), "state forwarding")
		}, time.Minute, 10*time.Millisecond)
	}
	source, _ := networktest.Pod(t)
	up(source, "source", guestMAC)
	cfg := bind(t, source, v)
	ctx, cancel := context.WithCancel(t.Context())
	held := make(chan error, 1)
	go func() { held <- link.Hold(ctx, source, cfg) }()

	target, _ := networktest.Pod(t)
	up(target, "target", guestMAC)
	port := func() string {
		for _, line := range strings.Split(networktest.Run(t, lan, testenv.Program(t, "bridge"), "fdb", "show", "br", "segment"), "\n") {
			if words := strings.Fields(line); len(words) > 2 && words[0] == guestMAC {
				return words[2]
			}
		}
		return ""
	}
	require.Eventually(t, func() bool { return port() == "source" }, time.Minute, 10*time.Millisecond)
	networktest.Run(t, lan, testenv.Program(t, "bridge"), "fdb", "replace", guestMAC, "dev", "target", "master", "dynamic")
	require.Eventually(t, func() bool { return port() == "source" }, time.Minute, 10*time.Millisecond, "as often as it is needed")
	require.Equal(t, cfg, bind(t, source, v), "a handler that binds the pod meanwhile finds what it made")

	cancel()
	require.NoError(t, <-held)
	networktest.Run(t, lan, testenv.Program(t, "bridge"), "fdb", "replace", guestMAC, "dev", "target", "master", "dynamic")
	for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		require.NotEqual(t, "source", port(), "the guest is at the target")
	}
	state, err := link.Observe(t.Context(), source)
	require.NoError(t, err)
	for _, l := range state.Links {
		require.NotContains(t, l.Name, "send", "the device that the frames were sent by is gone")
	}
	none := cfg
	none.Filters = nil
	require.NoError(t, link.Hold(t.Context(), source, none), "it has no port")
	gone := cfg
	gone.Filters = []network.Filter{{Uplink: "gone", MAC: guestMAC}}
	require.ErrorContains(t, link.Hold(t.Context(), source, gone), "hold the ports of the guest: link gone")

	gone.Filters = append(gone.Filters, cfg.Filters...)
	ctx, cancel = context.WithCancel(t.Context())
	go func() { held <- link.Hold(ctx, source, gone) }()
	for range 2 { // it is not over after the first frame
		networktest.Run(t, lan, testenv.Program(t, "bridge"), "fdb", "replace", guestMAC, "dev", "target", "master", "dynamic")
		require.Eventually(t, func() bool { return port() == "source" }, time.Minute, 10*time.Millisecond, "the other link holds its port")
	}
	cancel()
	require.ErrorContains(t, <-held, "link gone")
}

// A guest behind masquerade leaves its pod. Who had a connection with it over an address of
// the pod gets a reset, whether anything is sent on it or not.
func TestConnectionsOverTheAddressOfTheOldPodAreReset(t *testing.T) {
	pod, node := networktest.DualPod(t)
	// As kube-proxy does it, which forwards nothing that belongs to no connection.
	networktest.Run(t, node, testenv.Program(t, "nft"), "add table inet t; add chain inet t c { type filter hook input priority 0; }; add rule inet t c ct state invalid drop")
	v := instance(masquerade)
	cfg := bind(t, pod, v)
	guest := networktest.Guest(t, pod, cfg.Attachments[0])
	networktest.Lease(t, guest, "eth0")
	lease6(t, guest, "eth0")
	require.Eventually(t, func() bool { return strings.Contains(networktest.IP(t, guest, "-6 route show default"), "proto ra") }, time.Minute, 10*time.Millisecond)
	networktest.Listen(t, guest, "guest", "tcp", ":8080")
	networktest.Listen(t, node, "world", "tcp", ":9090")

	held := map[string]net.Conn{}
	open := func(name string, from *os.File, to string) {
		c := dial(t, from, to)
		_, err := c.Read(make([]byte, 1))
		require.NoError(t, err, name)
		held[name] = c
	}
	open("to the guest by IPv4", node, networktest.PodAddress+":8080")
	open("to the guest by IPv6", node, "["+networktest.PodAddress6+"]:8080")
	open("by the guest", guest, networktest.WorldAddress+":9090")

	left := cfg
	left.NAT = nil
	began := time.Now()
	require.NoError(t, nft.Apply(pod, left))
	done := make(chan error, 1)
	go func() { done <- link.Reset(t.Context(), pod, cfg) }()
	for name, c := range held {
		if name == "by the guest" { // its other end is what is reset
			continue
		}
		require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
		_, err := io.Copy(io.Discard, c)
		require.True(t, errors.Is(err, unix.ECONNRESET), "the idle connection %s: %v", name, err)
		t.Logf("%s: reset after %s", name, time.Since(began).Round(time.Millisecond))
	}
	require.NoError(t, <-done)
	require.Empty(t, established(t, node), "no connection is left in the world")
	for _, address := range []string{networktest.PodAddress, "[" + networktest.PodAddress6 + "]"} {
		var err error
		require.Eventually(t, func() bool { // what is sent may be lost
			_, err = networktest.Dial(t, node, "tcp", address+":8080")
			return err == nil || errors.Is(err, unix.ECONNREFUSED)
		}, time.Minute, 10*time.Millisecond)
		require.ErrorIs(t, err, unix.ECONNREFUSED)
	}
}

// established are the TCP connections of the namespace.
func established(t *testing.T, ns *os.File) string {
	t.Helper()
	return strings.TrimSpace(networktest.Run(t, ns, testenv.Program(t, "ss"), "-Htn", "state", "established"))
}
