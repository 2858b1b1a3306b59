package dhcp

import (
	"net"
	"net/netip"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/golden"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
)

var (
	mac   = net.HardwareAddr{2, 0x29, 0xef, 0xa9, 0xcb, 0x99}
	offer = network.Offer{
		Link: "k6t-eth0", MAC: mac.String(), Address: netip.MustParsePrefix("10.0.2.2/24"),
		Server: netip.MustParseAddr("10.0.2.1"), Router: netip.MustParseAddr("10.0.2.1"), MTU: 1450, Hostname: "hello",
	}
	resolver = Resolver{
		Nameservers: []netip.Addr{netip.MustParseAddr("10.96.0.10"), netip.MustParseAddr("fd00::10"), netip.MustParseAddr("10.96.0.11")},
		Search:      []string{"default.svc.cluster.local", "svc.cluster.local"},
	}
	booted = func() network.Offer {
		o := offer
		o.Options = &vmi.DHCPOptions{
			BootFileName: "boot.ipxe", TFTPServerName: "192.0.2.7", NTPServers: []string{"192.0.2.8", "192.0.2.9", "ntp.example.com"},
			PrivateOptions: []vmi.DHCPPrivateOption{{Option: 224, Value: "a"}, {Option: 254, Value: "b"}, {Option: 51, Value: "no"}},
		}
		return o
	}()
	routed = network.Offer{
		Link: "k6t-eth0", MAC: mac.String(), Address: netip.MustParsePrefix("10.244.0.5/32"),
		Server: netip.MustParseAddr("169.254.75.10"), Router: netip.MustParseAddr("169.254.1.1"), Subdomain: "farm",
		Routes: []network.Route{
			{Destination: netip.MustParsePrefix("169.254.1.1/32")},
			{Destination: netip.MustParsePrefix("10.96.0.0/12"), Gateway: netip.MustParseAddr("169.254.1.2")},
			{Destination: netip.MustParsePrefix("0.0.0.0/0"), Gateway: netip.MustParseAddr("169.254.1.1")},
		},
	}
)

// request is a message of a client.
func request(t *testing.T, kind dhcpv4.MessageType, more ...dhcpv4.Modifier) *dhcpv4.DHCPv4 {
	t.Helper()
	m, err := dhcpv4.New(append([]dhcpv4.Modifier{
		dhcpv4.WithMessageType(kind), dhcpv4.WithHwAddr(mac), dhcpv4.WithTransactionID(dhcpv4.TransactionID{1, 2, 3, 4}),
	}, more...)...)
	require.NoError(t, err)
	return m
}

func asksFor(address string) dhcpv4.Modifier {
	return dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress(net.ParseIP(address)))
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		offer network.Offer
		in    *dhcpv4.DHCPv4
		// want is the type of the answer. None: there is no answer.
		want dhcpv4.MessageType
		file string
	}{
		{"a client that discovers servers is offered its address", offer, request(t, dhcpv4.MessageTypeDiscover), dhcpv4.MessageTypeOffer, "offer"},
		{"a pod's routes are offered, and its subdomain", routed, request(t, dhcpv4.MessageTypeDiscover), dhcpv4.MessageTypeOffer, "routes"},
		{"the options of the spec are offered", booted, request(t, dhcpv4.MessageTypeDiscover), dhcpv4.MessageTypeOffer, "options"},
		{"a client gets the address that it was offered", offer, request(t, dhcpv4.MessageTypeRequest, asksFor("10.0.2.2"), dhcpv4.WithOption(dhcpv4.OptServerIdentifier(net.IPv4(10, 0, 2, 1)))), dhcpv4.MessageTypeAck, "ack"},
		{"a client that was started again keeps its address", offer, request(t, dhcpv4.MessageTypeRequest, asksFor("10.0.2.2")), dhcpv4.MessageTypeAck, ""},
		{"a client that renews keeps its address", offer, request(t, dhcpv4.MessageTypeRequest, dhcpv4.WithClientIP(net.IPv4(10, 0, 2, 2))), dhcpv4.MessageTypeAck, ""},
		{"a client with an address of another network is refused", offer, request(t, dhcpv4.MessageTypeRequest, asksFor("192.0.2.7")), dhcpv4.MessageTypeNak, "nak"},
		{"a client that renews another address is refused", offer, request(t, dhcpv4.MessageTypeRequest, dhcpv4.WithClientIP(net.IPv4(192, 0, 2, 7))), dhcpv4.MessageTypeNak, ""},
		{"a request without an address is refused", offer, request(t, dhcpv4.MessageTypeRequest), dhcpv4.MessageTypeNak, ""},
		{"a client that took another server's offer is not answered", offer, request(t, dhcpv4.MessageTypeRequest, asksFor("192.0.2.7"), dhcpv4.WithOption(dhcpv4.OptServerIdentifier(net.IPv4(192, 0, 2, 1)))), dhcpv4.MessageTypeNone, ""},
		{"a client that has an address gets the rest", offer, request(t, dhcpv4.MessageTypeInform, dhcpv4.WithClientIP(net.IPv4(10, 0, 2, 2))), dhcpv4.MessageTypeAck, "inform"},
		{"a release is not answered", offer, request(t, dhcpv4.MessageTypeRelease, dhcpv4.WithClientIP(net.IPv4(10, 0, 2, 2))), dhcpv4.MessageTypeNone, ""},
		{"a decline is not answered", offer, request(t, dhcpv4.MessageTypeDecline, asksFor("10.0.2.2")), dhcpv4.MessageTypeNone, ""},
		{"another client is not answered", offer, request(t, dhcpv4.MessageTypeDiscover, dhcpv4.WithHwAddr(net.HardwareAddr{2, 0, 0, 0, 0, 9})), dhcpv4.MessageTypeNone, ""},
		{"a relayed client is not answered", offer, request(t, dhcpv4.MessageTypeDiscover, dhcpv4.WithGatewayIP(net.IPv4(10, 0, 2, 9))), dhcpv4.MessageTypeNone, ""},
		{"a server is not answered", offer, request(t, dhcpv4.MessageTypeOffer), dhcpv4.MessageTypeNone, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := answer(tt.offer, resolver, tt.in)
			if tt.want == dhcpv4.MessageTypeNone {
				require.Nil(t, got)
				return
			}
			require.NotNil(t, got)
			require.Equal(t, tt.want, got.MessageType())
			require.Equal(t, tt.in.TransactionID, got.TransactionID)
			// The answer is read back as a client reads it.
			again, err := dhcpv4.FromBytes(got.ToBytes())
			require.NoError(t, err)
			if tt.file != "" {
				golden.Equal(t, "testdata/"+tt.file+".txt", []byte(again.Summary()))
			}
		})
	}
}

func FuzzAnswer(f *testing.F) {
	for _, kind := range []dhcpv4.MessageType{dhcpv4.MessageTypeDiscover, dhcpv4.MessageTypeRequest, dhcpv4.MessageTypeInform} {
		m, err := dhcpv4.New(dhcpv4.WithMessageType(kind), dhcpv4.WithHwAddr(mac), asksFor("10.0.2.2"), dhcpv4.WithRelay(net.IPv4zero))
		require.NoError(f, err)
		f.Add(m.ToBytes())
	}
	f.Fuzz(func(t *testing.T, packet []byte) {
		m, err := dhcpv4.FromBytes(packet)
		if err != nil {
			return
		}
		for _, o := range []network.Offer{offer, routed} {
			a := answer(o, resolver, m)
			if a == nil {
				continue
			}
			if m.ClientHWAddr.String() != o.MAC {
				t.Fatalf("%s is answered", m.ClientHWAddr)
			}
			got, err := dhcpv4.FromBytes(a.ToBytes())
			if err != nil {
				t.Fatal(err)
			}
			switch got.MessageType() {
			case dhcpv4.MessageTypeNak:
				if !unset(got.YourIPAddr) {
					t.Fatalf("a refusal offers %s", got.YourIPAddr)
				}
			case dhcpv4.MessageTypeOffer, dhcpv4.MessageTypeAck:
				if !unset(got.YourIPAddr) && !is(got.YourIPAddr, o.Address.Addr()) {
					t.Fatalf("the address %s is offered", got.YourIPAddr)
				}
			default:
				t.Fatalf("the answer is %s", got.MessageType())
			}
		}
	})
}
