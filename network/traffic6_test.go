package network_test

import (
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/dhcpv6/nclient6"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/internal/network/networktest"
	"github.com/podvisor/podvisor/vmi"
)

// lease6 requests an address for an interface of the guest by DHCPv6 and gives it to
// the interface, as a client does.
func lease6(t *testing.T, guest *os.File, iface string) *dhcpv6.Message {
	t.Helper()
	var reply *dhcpv6.Message
	require.Eventually(t, func() bool {
		c := client6On(t, guest, iface)
		defer c.Close()
		// Before its link-local address is there, nothing can be sent.
		advertised, err := c.Solicit(t.Context())
		if err == nil {
			reply, err = c.Request(t.Context(), advertised)
		}
		return err == nil
	}, time.Minute, 10*time.Millisecond)
	networktest.IP(t, guest, "addr add "+reply.Options.OneIANA().Options.OneAddress().IPv6Addr.String()+"/128 dev "+iface+" nodad")
	return reply
}

// client6On is a client of DHCPv6 on an interface of the guest, until the test ends.
func client6On(t *testing.T, guest *os.File, iface string) *nclient6.Client {
	t.Helper()
	var c *nclient6.Client
	networktest.In(t, guest, func() {
		// Not by a zone: package net remembers its number over namespaces.
		l := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
			return c.Control(func(fd uintptr) { _ = unix.BindToDevice(int(fd), iface) })
		}}
		conn, err := l.ListenPacket(t.Context(), "udp6", "[::]:546")
		require.NoError(t, err)
		c, err = nclient6.NewWithConn(conn, hardware(networktest.PodMAC), nclient6.WithTimeout(time.Second), nclient6.WithRetry(6))
		require.NoError(t, err)
	})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// NetworkManager and Windows do not make a link-local address of the MAC.
func TestAGuestBehindMasqueradeMayMakeUpItsLinkLocalAddress(t *testing.T) {
	pod, node := networktest.DualPod(t)
	cfg := bind(t, pod, instance(masquerade))
	guest := networktest.Guest(t, pod, cfg.Attachments[0])
	networktest.IP(t, guest, "-6 addr flush dev eth0")
	networktest.IP(t, guest, "addr add fe80::1234/64 dev eth0 nodad")
	lease6(t, guest, "eth0")
	require.Eventually(t, func() bool {
		return networktest.IP(t, guest, "-6 route show default") != ""
	}, time.Minute, 10*time.Millisecond)
	networktest.Listen(t, node, "world", "tcp", ":80")
	attempt{"IPv6 goes out", guest, "tcp", "[" + networktest.WorldAddress6 + "]:80", "world saw " + networktest.PodAddress6}.check(t)
}

// The guest does nothing but what every system does by default: it listens to router
// advertisements, and has a client of DHCPv6.
func TestAGuestBehindMasqueradeGetsItsIPv6ByItself(t *testing.T) {
	for name, tt := range map[string]struct{ cidr, network string }{
		"the usual network":    {"", "fd10:0:2::/120"},
		"a network of its own": {"fd66::/64", "fd66::/64"},
	} {
		t.Run(name, func(t *testing.T) {
			pod, node := networktest.DualPod(t)
			v := instance(masquerade)
			v.Spec.Networks[0].Pod = &vmi.PodNetwork{VMIPv6NetworkCIDR: tt.cidr}
			cfg := bind(t, pod, v)
			guest := networktest.Guest(t, pod, cfg.Attachments[0])
			require.Eventually(t, func() bool {
				return networktest.IP(t, guest, "-6 route show default") != ""
			}, time.Minute, 10*time.Millisecond)
			route := networktest.IP(t, guest, "-6 route show")
			require.Contains(t, route, "default via fe80::ff:fe00:0 dev eth0 proto ra")
			require.Contains(t, route, tt.network+" dev eth0 proto kernel", "the guest's network is that of the spec")
			reply := lease6(t, guest, "eth0")
			require.Equal(t, cfg.Attachments[0].DHCP6.Address.Addr().String(), reply.Options.OneIANA().Options.OneAddress().IPv6Addr.String())
			require.Equal(t, "1450", networktest.Read(t, guest, "/proc/sys/net/ipv6/conf/eth0/mtu"))

			networktest.Listen(t, guest, "guest", "tcp", ":8080")
			networktest.Listen(t, node, "world", "tcp", ":80")
			for _, a := range []attempt{
				{"IPv6 goes out", guest, "tcp", "[" + networktest.WorldAddress6 + "]:80", "world saw " + networktest.PodAddress6},
				{"IPv6 comes in", node, "tcp", "[" + networktest.PodAddress6 + "]:8080", "guest saw " + networktest.NodeAddress6},
			} {
				t.Run(a.name, a.check)
			}
		})
	}
}
