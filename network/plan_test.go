package network_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/internal/golden"
	"github.com/podvisor/podvisor/internal/network/networktest"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
)

// Short names for the VMIs and bindings of tests.
var (
	instance   = networktest.Instance
	bridge     = networktest.Bridge
	masquerade = networktest.Masquerade
)

func podNetwork(name string) vmi.Network {
	return vmi.Network{Name: name, NetworkSource: vmi.NetworkSource{Pod: &vmi.PodNetwork{}}}
}

func prefixes(s ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, p := range s {
		out = append(out, netip.MustParsePrefix(p))
	}
	return out
}

// route makes a route of a destination and a gateway, which may be empty.
func route(to, via string) network.Route {
	r := network.Route{Destination: netip.MustParsePrefix(to)}
	if via != "" {
		r.Gateway = netip.MustParseAddr(via)
	}
	return r
}

// fresh is a namespace as network plugins leave it: with eth0, and with the links
// of these secondary networks.
func fresh(secondary ...string) network.State {
	s := network.State{Links: []network.Link{
		{Index: 1, Name: "lo", MTU: 65536, Up: true, Addresses: prefixes("127.0.0.1/8")},
		{
			Index: 2, Name: "eth0", Kind: "veth", MAC: "0a:58:0a:f4:00:05", MTU: 1450, Up: true,
			Addresses: prefixes("10.244.0.5/24", "fd00:244::5/64"),
			Routes:    []network.Route{route("0.0.0.0/0", "10.244.0.1"), route("10.244.0.0/24", ""), route("::/0", "fd00:244::1")},
		},
	}}
	for n, name := range secondary {
		s.Links = append(s.Links, network.Link{
			Index: 3 + n, Name: network.PodLinkName(vmi.Network{Name: name}), Kind: "veth", MAC: networktest.SecondaryMAC(n + 1), MTU: 1450, Up: true,
			Addresses: prefixes(networktest.SecondaryAddress(n+1) + "/24"),
			Routes:    []network.Route{route(fmt.Sprintf("10.100.%d.0/24", n+1), ""), route("0.0.0.0/0", networktest.SecondaryGateway(n+1))},
		})
	}
	return s
}

func TestPlanOfMasquerade(t *testing.T) {
	t.Parallel()
	cfg, err := network.Plan(network.Input{Instance: instance(masquerade), State: fresh(), Owner: network.Owner{UID: 107, GID: 108}})
	require.NoError(t, err)
	mac := network.MAC("9f2f3c1e-4f5a-4f7b-8a39-3c6ee7a8e001", "default")
	require.Equal(t, []network.Attachment{{
		Name: "default", Tap: "tap0", MAC: mac, MTU: 1450,
		Way: &network.Way{Link: "k6t-eth0", From: netip.MustParseAddr("10.0.2.1"), To: netip.MustParseAddr("10.0.2.2")},
		DHCP: &network.Offer{
			Link: "k6t-eth0", MAC: mac, MTU: 1450, Hostname: "hello",
			Address: netip.MustParsePrefix("10.0.2.2/24"), Server: netip.MustParseAddr("10.0.2.1"), Router: netip.MustParseAddr("10.0.2.1"),
		},
		DHCP6: &network.Offer6{
			Tap: "ra0", MAC: mac, MTU: 1450, Address: netip.MustParsePrefix("fd10:0:2::2/120"),
			Router: netip.MustParseAddr("fe80::ff:fe00:0"), RouterMAC: "02:00:00:00:00:00",
		},
	}}, cfg.Attachments)
	require.Equal(t, []vmi.InterfaceStatus{{
		Name: "default", IP: "10.244.0.5", IPs: []string{"10.244.0.5", "fd00:244::5"}, MAC: mac,
		PodInterfaceName: "eth0", InfoSource: "domain", QueueCount: 1, LinkState: "up",
	}}, cfg.Interfaces)
	require.Equal(t, []network.NAT{{Link: "k6t-eth0", Loopback: true, Guests: []network.Guest{
		{Network: netip.MustParsePrefix("10.0.2.0/24"), Address: netip.MustParseAddr("10.0.2.2"), Gateway: netip.MustParseAddr("10.0.2.1"), Pod: []netip.Addr{netip.MustParseAddr("10.244.0.5")}},
		{Network: netip.MustParsePrefix("fd10:0:2::/120"), Address: netip.MustParseAddr("fd10:0:2::2"), Gateway: netip.MustParseAddr("fd10:0:2::1"), Pod: []netip.Addr{netip.MustParseAddr("fd00:244::5")}},
	}}}, cfg.NAT)
	require.Equal(t, network.Owner{UID: 107, GID: 108}, cfg.Links[1].Owner)
	require.Equal(t, prefixes("10.0.2.1/24", "fd10:0:2::1/120"), cfg.Links[0].Addresses)
}

func TestPlanFollowsTheSpec(t *testing.T) {
	t.Parallel()
	v := instance(masquerade)
	v.Spec.Networks[0].Pod = &vmi.PodNetwork{VMNetworkCIDR: "192.168.66.128/25", VMIPv6NetworkCIDR: "fd66::/64"}
	i := &v.Spec.Domain.Devices.Interfaces[0]
	i.MacAddress = "DE-AD-00-00-BE-EF"
	i.Ports = []vmi.Port{{Port: 443}, {Port: 53, Protocol: "UDP"}, {Port: 80, Protocol: "TCP"}, {Port: 443, Protocol: "TCP"}}
	v.Spec.Hostname, v.Spec.Subdomain = "web", "farm"
	cfg, err := network.Plan(network.Input{Instance: v, State: fresh()})
	require.NoError(t, err)
	at := cfg.Attachments[0]
	require.Equal(t, "de:ad:00:00:be:ef", at.MAC)
	require.Equal(t, "de:ad:00:00:be:ef", at.DHCP.MAC)
	require.Equal(t, netip.MustParsePrefix("192.168.66.130/25"), at.DHCP.Address)
	require.Equal(t, netip.MustParseAddr("192.168.66.129"), at.DHCP.Router)
	require.Equal(t, "web", at.DHCP.Hostname)
	require.Equal(t, "farm", at.DHCP.Subdomain)
	require.Equal(t, netip.MustParseAddr("fd66::2"), cfg.NAT[0].Guests[1].Address)
	require.Equal(t, []network.Port{{Protocol: "TCP", Number: 80}, {Protocol: "TCP", Number: 443}, {Protocol: "UDP", Number: 53}}, cfg.NAT[0].Ports)
}

func TestAPlanWithEachFieldOfAnInterface(t *testing.T) {
	t.Parallel()
	v := instance(masquerade, bridge, bridge)
	v.Spec.Domain.CPU = &vmi.CPU{Cores: 2, Sockets: 2}
	v.Spec.Domain.Devices.NetworkInterfaceMultiQueue = new(true)
	all := v.Spec.Domain.Devices.Interfaces
	all[0].DHCPOptions = &vmi.DHCPOptions{BootFileName: "boot.ipxe", TFTPServerName: "192.0.2.7", NTPServers: []string{"192.0.2.8"}, PrivateOptions: []vmi.DHCPPrivateOption{{Option: 240, Value: "x"}}}
	all[0].PortRanges = []vmi.PortRange{{Protocol: "UDP", Start: 53, End: 53}, {Protocol: "TCP", Start: 8000, End: 8999}}
	all[1].Model, all[1].State = vmi.InterfaceModelE1000, vmi.InterfaceDown
	all[2].State = vmi.InterfaceAbsent
	cfg, err := network.Plan(network.Input{Instance: v, State: fresh("lan1"), Links: networktest.Links(v)})
	require.NoError(t, err)
	golden.Equal(t, "testdata/fields.txt", []byte(cfg.String()))
	require.Equal(t, []int{4, 0}, []int{cfg.Attachments[0].Queues, cfg.Attachments[1].Queues})
	require.Equal(t, []int32{4, 1}, []int32{cfg.Interfaces[0].QueueCount, cfg.Interfaces[1].QueueCount})
	require.Equal(t, []string{"up", "down"}, []string{cfg.Interfaces[0].LinkState, cfg.Interfaces[1].LinkState})
	require.Equal(t, []network.Port{{Protocol: "TCP", Number: 8000, Last: 8999}, {Protocol: "UDP", Number: 53}}, cfg.NAT[0].Ports)
	require.Len(t, cfg.Interfaces, 2, "what is absent is not bound")
}

func TestABridgedGuestHasTheAddressOfThePod(t *testing.T) {
	t.Parallel()
	v := instance(bridge)
	v.Spec.Hostname, v.Spec.Subdomain = "web", "farm"
	v.Spec.Domain.Devices.Interfaces[0].MacAddress = "0A-58-0A-F4-00-05"
	cfg, err := network.Plan(network.Input{Instance: v, State: fresh()})
	require.NoError(t, err)
	at := cfg.Attachments[0]
	pod := "0a:58:0a:f4:00:05"
	require.Equal(t, []string{pod, pod, pod, pod}, []string{at.MAC, at.DHCP.MAC, cfg.Interfaces[0].MAC, cfg.Filters[0].MAC})
	require.Equal(t, []string{"web", "farm"}, []string{at.DHCP.Hostname, at.DHCP.Subdomain})
	require.Nil(t, cfg.NAT, "all ports reach the guest")
	for _, l := range cfg.Links {
		if !l.Down {
			require.NotEqual(t, at.MAC, l.MAC, "%s: no frame would reach the guest", l.Name)
		}
	}
}

func TestABridgedGuestMayHaveAnAddressOfItsOwnOnASecondaryNetwork(t *testing.T) {
	t.Parallel()
	v := instance(bridge, bridge)
	v.Spec.Domain.Devices.Interfaces[1].MacAddress = "DE-AD-00-00-BE-EF"
	cfg, err := network.Plan(network.Input{Instance: v, State: fresh("lan1"), Links: networktest.Links(v)})
	require.NoError(t, err)
	at := cfg.Attachments[1]
	other := "de:ad:00:00:be:ef"
	require.Equal(t, []string{other, other, other, other}, []string{at.MAC, at.DHCP.MAC, cfg.Interfaces[1].MAC, cfg.Filters[1].MAC})
}

func TestTheInterfaceIDIsMadeOfTheMAC(t *testing.T) {
	t.Parallel()
	require.Equal(t, "::858:aff:fef4:5", network.Filter{MAC: "0a:58:0a:f4:00:05"}.InterfaceID().String())
	require.Equal(t, "::211:22ff:fe33:4455", network.Filter{MAC: "00:11:22:33:44:55"}.InterfaceID().String())
	require.False(t, network.Filter{}.InterfaceID().IsValid())
}

func TestPlanOfBridgeOffersTheRoutesOfThePod(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name      string
		addresses []netip.Prefix
		routes    []network.Route
		want      *network.Offer
	}{
		{
			name:      "a default route within the network needs no list of routes",
			addresses: prefixes("10.244.0.5/24"),
			routes:    []network.Route{route("0.0.0.0/0", "10.244.0.1"), route("10.244.0.0/24", "")},
			want:      &network.Offer{Address: netip.MustParsePrefix("10.244.0.5/24"), Router: netip.MustParseAddr("10.244.0.1")},
		},
		{
			name:      "a second route is listed with the default one",
			addresses: prefixes("10.244.0.5/24"),
			routes:    []network.Route{route("0.0.0.0/0", "10.244.0.1"), route("10.96.0.0/12", "10.244.0.2"), route("10.244.0.0/24", "")},
			want: &network.Offer{
				Address: netip.MustParsePrefix("10.244.0.5/24"), Router: netip.MustParseAddr("10.244.0.1"),
				Routes: []network.Route{route("10.96.0.0/12", "10.244.0.2"), route("0.0.0.0/0", "10.244.0.1")},
			},
		},
		{
			name:      "a gateway outside of the network is reached first",
			addresses: prefixes("10.244.0.5/32"),
			routes:    []network.Route{route("0.0.0.0/0", "169.254.1.1"), route("169.254.1.1/32", "")},
			want: &network.Offer{
				Address: netip.MustParsePrefix("10.244.0.5/32"), Router: netip.MustParseAddr("169.254.1.1"),
				Routes: []network.Route{route("169.254.1.1/32", ""), route("0.0.0.0/0", "169.254.1.1")},
			},
		},
		{
			name:      "a gateway that is on the link without a route gets one",
			addresses: prefixes("10.244.0.5/32"),
			routes:    []network.Route{route("0.0.0.0/0", "169.254.1.1")},
			want: &network.Offer{
				Address: netip.MustParsePrefix("10.244.0.5/32"), Router: netip.MustParseAddr("169.254.1.1"),
				Routes: []network.Route{route("169.254.1.1/32", ""), route("0.0.0.0/0", "169.254.1.1")},
			},
		},
		{
			name:      "a network that is reached by a gateway is not on the link",
			addresses: prefixes("10.244.0.5/24"),
			routes:    []network.Route{route("10.244.0.1/32", ""), route("10.244.0.0/24", "10.244.0.1"), route("0.0.0.0/0", "10.244.0.1")},
			want: &network.Offer{
				Address: netip.MustParsePrefix("10.244.0.5/32"), Router: netip.MustParseAddr("10.244.0.1"),
				Routes: []network.Route{route("10.244.0.1/32", ""), route("10.244.0.0/24", "10.244.0.1"), route("0.0.0.0/0", "10.244.0.1")},
			},
		},
		{
			name:      "of several routes to a destination the best one counts",
			addresses: prefixes("10.244.0.5/24"),
			routes:    []network.Route{route("0.0.0.0/0", "10.244.0.1"), route("0.0.0.0/0", "10.244.0.2"), route("10.244.0.0/24", "")},
			want:      &network.Offer{Address: netip.MustParsePrefix("10.244.0.5/24"), Router: netip.MustParseAddr("10.244.0.1")},
		},
		{
			name:      "a pod without IPv4 offers nothing",
			addresses: prefixes("fd00:244::5/64"),
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := fresh()
			s.Links[1].Addresses, s.Links[1].Routes = tt.addresses, tt.routes
			cfg, err := network.Plan(network.Input{Instance: instance(bridge), State: s})
			require.NoError(t, err)
			at := cfg.Attachments[0]
			require.Equal(t, "0a:58:0a:f4:00:05", at.MAC)
			if tt.want != nil {
				tt.want.Link, tt.want.MAC, tt.want.MTU, tt.want.Hostname = "k6t-eth0", at.MAC, 1450, "hello"
				tt.want.Server = netip.MustParseAddr("169.254.75.10")
			}
			require.Equal(t, tt.want, at.DHCP)
		})
	}
}

func TestPlan(t *testing.T) {
	t.Parallel()
	for name, bindings := range map[string][]vmi.InterfaceBinding{
		"bridge":                {bridge},
		"masquerade":            {masquerade},
		"bridge-bridge":         {bridge, bridge},
		"masquerade-bridge":     {masquerade, bridge},
		"masquerade-masquerade": {masquerade, masquerade},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := instance(bindings...)
			v.Spec.Subdomain = "farm"
			if len(bindings) == 2 {
				v.Spec.Domain.Devices.Interfaces[1].Ports = []vmi.Port{{Port: 443}, {Port: 53, Protocol: "UDP"}}
			}
			in := network.Input{Instance: v, State: fresh("lan1"), Owner: network.Owner{UID: 107, GID: 108}, Links: networktest.Links(v)}
			before := v.DeepCopy()
			cfg, err := network.Plan(in)
			require.NoError(t, err)
			golden.Equal(t, "testdata/"+name+".txt", []byte(cfg.String()))
			require.Equal(t, before, v, "the instance is not changed")
		})
	}
}

func TestThePlanOfAnInterfaceDoesNotDependOnItsNeighbours(t *testing.T) {
	t.Parallel()
	both, single := instance(bridge, masquerade), instance(bridge)
	s := fresh("lan1")
	two, err := network.Plan(network.Input{Instance: both, State: s, Links: networktest.Links(both)})
	require.NoError(t, err)
	one, err := network.Plan(network.Input{Instance: single, State: s})
	require.NoError(t, err)
	require.Equal(t, one.Links, two.Links[:len(one.Links)])
	require.Equal(t, one.Attachments[0], two.Attachments[0])
	require.Equal(t, one.Interfaces[0], two.Interfaces[0])
}

func TestAnInterfaceWithoutIPAMIsNotServedDHCP(t *testing.T) {
	t.Parallel()
	v, s := instance(masquerade, bridge), fresh("lan1")
	s.Links[2].Addresses, s.Links[2].Routes = nil, nil
	cfg, err := network.Plan(network.Input{Instance: v, State: s, Links: networktest.Links(v)})
	require.NoError(t, err)
	require.NotNil(t, cfg.Attachments[0].DHCP)
	require.Nil(t, cfg.Attachments[1].DHCP)
	require.Equal(t, networktest.SecondaryMAC(1), cfg.Attachments[1].MAC)
	require.Empty(t, cfg.Interfaces[1].IP)
}

func TestPlanOfNothing(t *testing.T) {
	t.Parallel()
	cfg, err := network.Plan(network.Input{Instance: &vmi.VirtualMachineInstance{}})
	require.NoError(t, err)
	require.Equal(t, network.Config{}, cfg)
}

func TestMACIsStableAndLocal(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, uid := range []string{"a", "b", "9f2f3c1e-4f5a-4f7b-8a39-3c6ee7a8e001"} {
		for _, name := range []string{"default", "other", ""} {
			m := network.MAC(types.UID(uid), name)
			require.Regexp(t, "^02(:[0-9a-f]{2}){5}$", m)
			require.NotEqual(t, "02:00:00:00:00:00", m)
			require.False(t, seen[m])
			seen[m] = true
			require.Equal(t, m, network.MAC(types.UID(uid), name))
		}
	}
	require.Equal(t, "02:29:ef:a9:cb:99", network.MAC("9f2f3c1e-4f5a-4f7b-8a39-3c6ee7a8e001", "default"), "it must never change")
}
