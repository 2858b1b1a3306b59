package network_test

import (
	"encoding/binary"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/network/networktest"
	"github.com/podvisor/podvisor/internal/testenv"
)

// setting is a number of the namespace's connection tracking.
func setting(t *testing.T, ns *os.File, name string) int {
	t.Helper()
	var b []byte
	var err error
	networktest.In(t, ns, func() { b, err = os.ReadFile("/proc/sys/net/netfilter/nf_conntrack_" + name) })
	require.NoError(t, err)
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	require.NoError(t, err)
	return n
}

// connections opens connections as a guest: each datagram has other ports.
func (s sender) connections(t *testing.T, count int) time.Duration {
	t.Helper()
	frame := append(make([]byte, networktest.HeaderLength), toGateway(typeIPv4, ipv4(routed4, networktest.WorldAddress, 17, 0, udp(1, 2, nil)))...)
	ports := frame[networktest.HeaderLength+34:]
	began := time.Now()
	for n := range count {
		binary.BigEndian.PutUint16(ports, uint16(1+n%60000))
		binary.BigEndian.PutUint16(ports[2:], uint16(1000+n/60000))
		_, err := s.tap.Write(frame)
		require.NoError(t, err)
	}
	return time.Since(began)
}

// The kernel counts the connections of each namespace for itself. So those of a
// guest, which its pod tracks to translate them, fill the table of its pod. In the
// node's table they count as those of any pod, which may open as many.
func TestAttackTheConnectionsOfAGuestFillTheTableOfItsPodAlone(t *testing.T) {
	pod, node := networktest.Pod(t)
	other, otherNode := networktest.Pod(t)
	plain, plainNode := networktest.Pod(t)
	nft := testenv.Program(t, "nft")
	for _, n := range []*os.File{node, plainNode} {
		networktest.Run(t, n, nft, "add table ip t; add chain ip t c { type filter hook prerouting priority 0; }; add rule ip t c ct state new counter")
	}
	v := instance(masquerade)
	cfg, otherCfg := bind(t, pod, v), bind(t, other, v)
	s, inPod := newSender(t, pod, cfg.Attachments[0], toGateway(typeARP, arp(1, routedMAC, routed4, gateway4))), networktest.Watch(t, pod, "k6t-eth0")
	s.open(t, inPod)
	guest := networktest.Guest(t, other, otherCfg.Attachments[0])
	networktest.Lease(t, guest, "eth0")
	networktest.Listen(t, otherNode, "world", "tcp", networktest.WorldAddress+":80")

	count := 20_000
	if testenv.Long() {
		count = setting(t, pod, "max") + 20_000
	}
	before := setting(t, other, "count")
	limit := setting(t, pod, "max")
	inThePod, took := 0, time.Duration(0)
	for began := time.Now(); inThePod <= min(count, limit)/2 && time.Since(began) < time.Minute; {
		took = s.connections(t, count)
		inThePod = setting(t, pod, "count") // on a slow host the first may be forgotten by now
	}
	t.Logf("%d connections in %s, %d in the table of the pod, which has room for %d", count, took, inThePod, limit)
	require.LessOrEqual(t, inThePod, limit)
	require.Greater(t, inThePod, min(count, limit)/2)
	require.LessOrEqual(t, setting(t, other, "count"), before+10)
	attempt{"another guest connects meanwhile", guest, "tcp", networktest.WorldAddress + ":80", "world saw " + networktest.PodAddress}.check(t)

	// A program of a plain pod, without any privilege.
	const datagrams = 1000
	inTheNode := setting(t, plainNode, "count")
	var c net.PacketConn
	networktest.In(t, plain, func() {
		var err error
		c, err = net.ListenPacket("udp", ":0")
		require.NoError(t, err)
	})
	defer c.Close()
	require.Eventually(t, func() bool { // some may be lost
		for n := range datagrams {
			_, err := c.WriteTo(nil, &net.UDPAddr{IP: net.ParseIP(networktest.WorldAddress), Port: 10000 + n})
			require.NoError(t, err)
		}
		return setting(t, plainNode, "count") >= inTheNode+datagrams
	}, time.Minute, 10*time.Millisecond)
	require.LessOrEqual(t, setting(t, node, "count"), count+100, "a guest's connections count once")
}
