package e2e

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/network/networktest"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// tried is what a guest writes when it has tried what it may not do.
const tried = "has tried it all"

// namespace opens the network namespace of the node, or of one of its processes.
func (n traces) namespace(process string) *os.File {
	n.t.Helper()
	pid, err := world.cluster.Node(n.node).PID()
	require.NoError(n.t, err)
	path := fmt.Sprintf("/proc/%d/ns/net", pid)
	if process != "" {
		path = fmt.Sprintf("/proc/%d/root/proc/%s/ns/net", pid, process)
	}
	f, err := os.Open(path)
	require.NoError(n.t, err)
	n.t.Cleanup(func() { _ = f.Close() })
	return f
}

// launcher is the process of the VMI's launcher on its node.
func (n traces) launcher() string {
	n.t.Helper()
	pid, _, _ := strings.Cut(n.process("virt-launcher"), " ")
	return pid
}

// octets are an address as it is in a packet.
func octets(t *testing.T, address string) []byte {
	t.Helper()
	a, err := netip.ParseAddr(address)
	require.NoError(t, err)
	return a.AsSlice()
}

// attempts is user data that the guest runs.
func attempts(lines ...string) string {
	return "#!/bin/sh\n" + strings.Join(append(lines, "echo "+tried+" > /dev/console"), "\n") + "\n"
}

func TestAttackABridgedGuestDoesNotGetTheAddressOfAnotherPod(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	observer, victim := s.newVisitor(), s.newVisitor()
	s.kubectl("exec", victim.pod, "--", "sh", "-c", "echo the victim > /tmp/index.html && httpd -p 8080 -h /tmp")
	node := s.kubectl("get", "pod", victim.pod, "-o", "jsonpath={.spec.nodeName}")
	address := s.kubectl("get", "pod", victim.pod, "-o", "jsonpath={.status.podIP}")
	page := "http://" + address + ":8080"
	require.Contains(t, observer.awaitPage(page), "the victim")
	n := traces{t: t, node: node}
	wire := networktest.WatchAllButTCP(t, n.namespace(""), "cni0")

	v := guest("thief", attempts(
		"ping -c 1 -W 2 "+address,
		"ip addr add "+address+"/32 dev eth0",
		"echo the thief > /www/index.html; httpd -p 8080 -h /www",
		"arping -q -U -c 3 -w 4 -I eth0 "+address,
		"arping -q -A -c 3 -w 4 -I eth0 "+address,
		"ip link set eth0 down; ip link set eth0 address 0a:58:00:00:00:99; ip link set eth0 up",
		"arping -q -U -c 2 -w 3 -I eth0 "+address,
	), onNode(node))
	v.Spec.Domain.Devices.Interfaces, v.Spec.Networks = nil, nil
	vmitest.WithBridge("default")(v)
	s.create(v)
	v = s.awaitPhase("thief", vmi.PhaseRunning)
	for began := time.Now(); ; {
		// A page that the guest serves would come while it sends.
		got, err := observer.fetch(page)
		require.NoError(t, err)
		require.Contains(t, got, "the victim")
		if strings.Contains(s.console(v), tried) {
			break
		}
		require.Less(t, time.Since(began), long, "the guest did not try")
	}
	own := v.Status.Interfaces[0]
	mac, err := net.ParseMAC(own.MAC)
	require.NoError(t, err)
	require.True(t, wire.Await(append(bytes.Clone(mac), octets(t, own.IP)...)), "what the guest may send by ARP is on the wire")
	require.False(t, wire.Has(append(bytes.Clone(mac), octets(t, address)...)), "the guest announced the address of another pod")
	require.False(t, wire.Has([]byte{0x0a, 0x58, 0, 0, 0, 0x99}), "the guest sent from another MAC address")
	require.NotContains(t, n.run("ip neigh show "+address), own.MAC)
}

func TestAttackARoutedGuestDoesNotForgeAddressesOrReachItsPod(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	observer := s.newVisitor()
	address := s.kubectl("get", "pod", observer.pod, "-o", "jsonpath={.status.podIP}")
	node := s.kubectl("get", "pod", observer.pod, "-o", "jsonpath={.spec.nodeName}")
	const forged = "192.0.2.77"
	n := traces{t: t, node: node}
	wire := networktest.WatchAllButTCP(t, n.namespace(""), "cni0")
	// The guest begins when there is a page to get: all that sees it is there then.
	v := guest("forger", attempts(
		"until wget -q -O /dev/null http://"+address+":8080; do sleep 1; done",
		"ping -c 2 -W 1 "+address,
		"ip addr add "+forged+"/32 dev eth0",
		"ping -c 2 -W 1 -I "+forged+" "+address,
		"echo 1 > /proc/sys/net/ipv4/conf/all/route_localnet",
		"ip route del local 127.0.0.0/8 dev lo table local",
		"ip route del local 127.0.0.1 dev lo table local",
		"ip route add 127.0.0.1/32 via 10.0.2.1 dev eth0 src 10.0.2.2",
		"for i in 1 2 3; do",
		"  nc -w 1 127.0.0.1 9999 < /dev/null > /dev/console",
		"  nc -w 1 10.0.2.1 9998 < /dev/null > /dev/console",
		"done",
	), onNode(node))
	v.Spec.Domain.Devices.Interfaces, v.Spec.Networks = nil, nil
	vmitest.WithMasquerade("default", vmi.Port{Port: 80})(v)
	s.create(v)
	v = s.awaitPhase("forger", vmi.PhaseRunning)
	n = s.traces(v)
	pod := n.namespace(n.launcher())
	networktest.Listen(t, pod, "sidecar", "tcp", "127.0.0.1:9999")
	networktest.Listen(t, pod, "sidecar", "tcp", "0.0.0.0:9998")
	got, err := networktest.Ask(t, pod, "tcp", "127.0.0.1:9999")
	require.NoError(t, err)
	require.Equal(t, "sidecar saw 127.0.0.1", got, "programs of the pod reach its sidecars")
	s.kubectl("exec", observer.pod, "--", "sh", "-c", "echo begin > /tmp/index.html && httpd -p 8080 -h /tmp")

	console := s.awaitConsole(v, tried)
	require.NotContains(t, console, "sidecar saw", "the guest reached what listens in its pod")
	to := octets(t, address)
	require.True(t, wire.Await(append(octets(t, v.Status.Interfaces[0].IP), to...)), "what the guest may send is on the wire")
	require.False(t, wire.Has(append(octets(t, forged), to...)), "a packet from a forged address left the pod")
}
