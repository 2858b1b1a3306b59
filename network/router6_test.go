package network_test

import (
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/golden"
	"github.com/podvisor/podvisor/internal/network/link"
	"github.com/podvisor/podvisor/internal/network/networktest"
	"github.com/podvisor/podvisor/internal/network/nft"
	"github.com/podvisor/podvisor/network"
)

// routed is a pod of both families whose router of IPv6 answers.
func routed() network.State {
	s := fresh()
	eth0 := &s.Links[1]
	eth0.Addresses = append(eth0.Addresses[:1:1], netip.MustParsePrefix("fd00:244::5/64"))
	eth0.Routes = append(eth0.Routes, network.Route{Destination: netip.MustParsePrefix("fd00:244::/64")},
		network.Route{Destination: netip.MustParsePrefix("::/0"), Gateway: netip.MustParseAddr("fd00:244::1")})
	eth0.Router, eth0.RouterMAC = netip.MustParseAddr("fe80::858:aff:fef4:1"), "0a:58:0a:f4:00:01"
	return s
}

func TestABridgedGuestIsOfferedTheRouterOfItsPod(t *testing.T) {
	t.Parallel()
	plan := func(s network.State) network.Config {
		cfg, err := network.Plan(network.Input{Instance: instance(bridge), State: s})
		require.NoError(t, err)
		return cfg
	}
	s := routed()
	cfg := plan(s)
	golden.Equal(t, "testdata/bridge-ipv6.txt", []byte(cfg.String()))
	require.Equal(t, netip.MustParseAddr("fe80::858:aff:fef4:1"), cfg.Attachments[0].DHCP6.Router)

	s.Links[1].Routes = nil // as of a plugin that reaches everything by the gateway
	require.Equal(t, netip.MustParsePrefix("fd00:244::5/128"), plan(s).Attachments[0].DHCP6.Address)

	s.Links[1].RouterMAC, s.Links[1].RouterSilent = "", true
	cfg = plan(s)
	require.Nil(t, cfg.Attachments[0].DHCP6)
	require.Len(t, cfg.Links, 4)
	require.Len(t, cfg.Notes, 1)
	require.Contains(t, cfg.String(), "note: interface default: the pod's router of IPv6 does not answer")
}

// The guest does nothing but what every system does by default: it listens to router
// advertisements, and has a client of DHCPv6.
func TestABridgedGuestGetsItsIPv6ByItself(t *testing.T) {
	pod, node := networktest.DualPod(t)
	v := instance(bridge)
	cfg := bind(t, pod, v)
	require.NotNil(t, cfg.Attachments[0].DHCP6)
	guest := networktest.Guest(t, pod, cfg.Attachments[0])
	router := cfg.Attachments[0].DHCP6.Router.String()
	require.Eventually(t, func() bool {
		return networktest.IP(t, guest, "-6 route show default") != ""
	}, time.Minute, 10*time.Millisecond)
	route := networktest.IP(t, guest, "-6 route show")
	require.Contains(t, route, "default via "+router+" dev eth0 proto ra")
	require.Contains(t, route, "fd00:244::/64 dev eth0 proto kernel", "the pod's network is on the link")
	reply := lease6(t, guest, "eth0")
	require.Equal(t, networktest.PodAddress6, reply.Options.OneIANA().Options.OneAddress().IPv6Addr.String())

	networktest.Listen(t, guest, "guest", "tcp", ":8080")
	networktest.Listen(t, node, "world", "tcp", ":80")
	for _, a := range []attempt{
		{"IPv6 goes out", guest, "tcp", "[" + networktest.WorldAddress6 + "]:80", "world saw " + networktest.PodAddress6},
		{"IPv6 comes in", node, "tcp", "[" + networktest.PodAddress6 + "]:8080", "guest saw " + networktest.NodeAddress6},
	} {
		a.check(t)
	}
	// The router itself answers the guest's questions whether it is there.
	networktest.IP(t, guest, "-6 neigh replace "+router+" lladdr "+cfg.Attachments[0].DHCP6.RouterMAC+" dev eth0 nud probe")
	require.Eventually(t, func() bool {
		return networktest.IP(t, guest, "-6 neigh show "+router+" nud reachable") != ""
	}, time.Minute, 10*time.Millisecond)

	// A handler that starts anew finds what was bound.
	s, err := link.Observe(t.Context(), pod)
	require.NoError(t, err)
	require.NoError(t, link.FindRouter(t.Context(), pod, &s, network.RoutedLink(v, nil)))
	again, err := network.Plan(network.Input{Instance: v, State: s, Owner: network.Owner{UID: 107, GID: 107}, Links: networktest.Links(v)})
	require.NoError(t, err)
	require.Equal(t, cfg, again)
}

// The bridge of the network plugin bridge has such an address if two pods are attached to
// it while it comes up, since each may change its MAC.
func TestABridgedGuestHasTheRouterWhoseLinkLocalAddressItsMACDoesNotMake(t *testing.T) {
	for name, forwards := range map[string]string{"a router": "1", "a router without a route": "0"} {
		t.Run(name, func(t *testing.T) {
			pod, node := networktest.DualPod(t)
			networktest.In(t, node, func() {
				require.NoError(t, os.WriteFile("/proc/sys/net/ipv6/conf/all/forwarding", []byte(forwards), 0))
			})
			flushLinkLocal(t, node)
			networktest.IP(t, node, "addr add fe80::7/64 dev podlink nodad")
			if forwards == "1" { // it would answer that it has no route
				networktest.IP(t, node, "route add 2001:db8::/64 dev podlink")
			}
			v := instance(bridge)
			cfg := bind(t, pod, v)
			o := cfg.Attachments[0].DHCP6
			require.NotNil(t, o, cfg.Notes)
			require.Equal(t, "fe80::7", o.Router.String())
			require.Equal(t, "0a:58:0a:f4:00:01", o.RouterMAC)
			guest := networktest.Guest(t, pod, cfg.Attachments[0])
			require.Eventually(t, func() bool {
				return strings.Contains(networktest.IP(t, guest, "-6 route show default"), "default via fe80::7 dev eth0 proto ra")
			}, time.Minute, 10*time.Millisecond)
			lease6(t, guest, "eth0")
			ping(t, guest, networktest.NodeAddress6)

			s, err := link.Observe(t.Context(), pod)
			require.NoError(t, err)
			again, err := network.Plan(network.Input{Instance: v, State: s, Owner: network.Owner{UID: 107, GID: 107}, Links: networktest.Links(v)})
			require.NoError(t, err)
			require.Equal(t, cfg, again)
		})
	}
}

// flushLinkLocal takes the node's link-local address from the pod's link when the kernel has
// given it one, which it does some time after the link has its carrier.
func flushLinkLocal(t *testing.T, node *os.File) {
	t.Helper()
	require.Eventually(t, func() bool {
		return networktest.IP(t, node, "-6 addr show dev podlink scope link") != ""
	}, time.Minute, 10*time.Millisecond)
	networktest.IP(t, node, "-6 addr flush dev podlink scope link")
}

func TestABridgedGuestHasNoRouterWhereNoneAnswersAtALinkLocalAddress(t *testing.T) {
	pod, node := networktest.DualPod(t)
	flushLinkLocal(t, node)
	cfg := bind(t, pod, instance(bridge))
	require.Nil(t, cfg.Attachments[0].DHCP6)
	require.Len(t, cfg.Notes, 1)
}

// Who has taken over a launcher can write any frame to the tap device by which it answers
// the guest. With the bridge binding others are on the guest's link.
func TestAttackTheNetworkByTheTapDeviceOfABridgedGuestsRouter(t *testing.T) {
	pod, node := networktest.DualPod(t)
	v := instance(bridge)
	state, err := link.Observe(t.Context(), pod)
	require.NoError(t, err)
	require.NoError(t, link.FindRouter(t.Context(), pod, &state, network.RoutedLink(v, nil)))
	cfg, err := network.Plan(network.Input{Instance: v, State: state, Owner: network.Owner{UID: 107, GID: 107}})
	require.NoError(t, err)
	require.NoError(t, nft.Apply(pod, cfg))
	require.NoError(t, link.Apply(t.Context(), pod, cfg))
	o := cfg.Attachments[0].DHCP6
	require.NotNil(t, o)
	mac, router := o.RouterMAC, o.Router.String()
	guest := networktest.Guest(t, pod, cfg.Attachments[0])
	advert := ethernet(networktest.PodMAC, mac, typeIPv6, discovery(router, everyone6, routing, "", sourceOption, mac))
	s := newSender(t, pod, network.Attachment{Tap: o.Tap}, advert)
	atGuest, atNode := networktest.Watch(t, guest, "eth0"), networktest.Watch(t, node, "podlink")
	s.open(t, atGuest)
	for _, tt := range []frameCase{
		{"an advertisement for everyone", ethernet(everyMAC6, mac, typeIPv6, discovery(router, everyone6, routing, "", sourceOption, mac))},
		{"an advertisement for the router", ethernet(mac, mac, typeIPv6, discovery(router, everyone6, routing, "", sourceOption, mac))},
		{"an advertisement for another guest", ethernet(victimMAC, mac, typeIPv6, discovery(router, everyone6, routing, "", sourceOption, mac))},
		{"a datagram", ethernet(mac, networktest.PodMAC, typeIPv6, datagram6(networktest.PodAddress6, networktest.WorldAddress6, 1, 2, nil))},
		{"an announcement of the router's address", ethernet(networktest.PodMAC, mac, typeIPv6, discovery(router, everyone6, advertisement, router, targetOption, mac))},
	} {
		known := s.send(t, tt.frame)
		require.True(t, atGuest.Await(s.send(t, advert)), tt.name)
		require.False(t, atNode.Has(known), tt.name)
		require.False(t, atGuest.Has(known), tt.name)
	}
}
