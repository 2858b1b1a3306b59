package dhcp

import (
	"log/slog"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/iana"
	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/golden"
	"github.com/podvisor/podvisor/network"
)

var (
	offer6 = network.Offer6{
		Tap: "ra0", MAC: mac.String(), Address: netip.MustParsePrefix("fd10:0:2::2/120"),
		Router: netip.MustParseAddr("fe80::ff:fe00:0"), RouterMAC: "02:00:00:00:00:00", MTU: 1450, Subdomain: "farm",
	}
	guest6 = network.LinkLocal(mac.String())
)

// request6 is a message of a client with one identity.
func request6(t testing.TB, kind dhcpv6.MessageType, more ...dhcpv6.Modifier) *dhcpv6.Message {
	t.Helper()
	m, err := dhcpv6.NewMessage(append([]dhcpv6.Modifier{
		dhcpv6.WithClientID(&dhcpv6.DUIDLL{HWType: iana.HWTypeEthernet, LinkLayerAddr: mac}), dhcpv6.WithIAID([4]byte{1, 2, 3, 4}),
	}, more...)...)
	require.NoError(t, err)
	m.MessageType, m.TransactionID = kind, dhcpv6.TransactionID{1, 2, 3}
	return m
}

// has is an address that the client has or asks for.
func has(address string) dhcpv6.Modifier {
	return dhcpv6.WithIANA(dhcpv6.OptIAAddress{IPv6Addr: net.ParseIP(address)})
}

func TestAnswer6(t *testing.T) {
	t.Parallel()
	ours := dhcpv6.WithServerID(&dhcpv6.DUIDLL{HWType: iana.HWTypeEthernet, LinkLayerAddr: net.HardwareAddr{2, 0, 0, 0, 0, 0}})
	theirs := dhcpv6.WithServerID(&dhcpv6.DUIDLL{HWType: iana.HWTypeEthernet, LinkLayerAddr: net.HardwareAddr{2, 0, 0, 0, 0, 9}})
	for _, tt := range []struct {
		name string
		in   *dhcpv6.Message
		// want is the type of the answer. None: there is no answer.
		want dhcpv6.MessageType
		file string
	}{
		{"a client that looks for servers is offered its address", request6(t, dhcpv6.MessageTypeSolicit), dhcpv6.MessageTypeAdvertise, "advertise"},
		{"a client in a hurry gets it at once", request6(t, dhcpv6.MessageTypeSolicit, dhcpv6.WithRapidCommit), dhcpv6.MessageTypeReply, ""},
		{"a client gets the address that it was offered", request6(t, dhcpv6.MessageTypeRequest, ours), dhcpv6.MessageTypeReply, "reply"},
		{"a client that renews keeps its address", request6(t, dhcpv6.MessageTypeRenew, ours, has("fd10:0:2::2")), dhcpv6.MessageTypeReply, ""},
		{"a client with another address gives that up", request6(t, dhcpv6.MessageTypeRebind, has("2001:db8::7")), dhcpv6.MessageTypeReply, "rebind"},
		{"the second identity of a client has no address", request6(t, dhcpv6.MessageTypeSolicit, func(d dhcpv6.DHCPv6) {
			d.AddOption(&dhcpv6.OptIANA{IaId: [4]byte{9}})
		}), dhcpv6.MessageTypeAdvertise, "identities"},
		{"a client whose address is right here", request6(t, dhcpv6.MessageTypeConfirm, has("fd10:0:2::2")), dhcpv6.MessageTypeReply, "confirm"},
		{"a client whose address is of elsewhere", request6(t, dhcpv6.MessageTypeConfirm, has("2001:db8::7")), dhcpv6.MessageTypeReply, "not-on-link"},
		{"a client that confirms nothing", request6(t, dhcpv6.MessageTypeConfirm), dhcpv6.MessageTypeNone, ""},
		{"a client that has an address gets the rest", request6(t, dhcpv6.MessageTypeInformationRequest), dhcpv6.MessageTypeReply, "information"},
		{"a release is answered", request6(t, dhcpv6.MessageTypeRelease, ours, has("fd10:0:2::2")), dhcpv6.MessageTypeReply, ""},
		{"a request to another server is not answered", request6(t, dhcpv6.MessageTypeRequest, theirs), dhcpv6.MessageTypeNone, ""},
		{"a request to no server is not answered", request6(t, dhcpv6.MessageTypeRequest), dhcpv6.MessageTypeNone, ""},
		{"a client that names a server while it looks for one", request6(t, dhcpv6.MessageTypeSolicit, ours), dhcpv6.MessageTypeNone, ""},
		{"a server is not answered", request6(t, dhcpv6.MessageTypeAdvertise), dhcpv6.MessageTypeNone, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := answer6(offer6, resolver, tt.in)
			if tt.want == dhcpv6.MessageTypeNone {
				require.Nil(t, got)
				return
			}
			require.NotNil(t, got)
			require.Equal(t, tt.want, got.Type())
			require.Equal(t, tt.in.TransactionID, got.TransactionID)
			again, err := dhcpv6.MessageFromBytes(got.ToBytes())
			require.NoError(t, err)
			if tt.file != "" {
				golden.Equal(t, "testdata/six-"+tt.file+".txt", []byte(again.Summary()+"\n"))
			}
		})
	}
	anonymous := request6(t, dhcpv6.MessageTypeSolicit)
	anonymous.Options.Del(dhcpv6.OptionClientID)
	require.Nil(t, answer6(offer6, resolver, anonymous))
}

// solicitation is a router solicitation of the guest.
func solicitation(from string) []byte {
	o := offer6
	o.MAC, o.RouterMAC, o.Router = offer6.RouterMAC, offer6.MAC, netip.MustParseAddr(from)
	return frame6(o, allRouters, protocolICMP6, []byte{routerSolicit, 0, 0, 0, 0, 0, 0, 0})
}

// datagram6 is a message of DHCPv6 of the guest.
func datagram6(message []byte) []byte {
	o := offer6
	o.MAC, o.RouterMAC, o.Router = offer6.RouterMAC, offer6.MAC, guest6
	f := udp6(o, allServers, message)
	f[etherHeader+ipv6Header+1], f[etherHeader+ipv6Header+3] = portClient6&0xff, portServer6&0xff
	return f
}

func TestOnlyTheGuestsQuestionsAreAnswered(t *testing.T) {
	t.Parallel()
	changed := func(f []byte, at int, to byte) []byte {
		f[at] = to
		return f
	}
	for _, tt := range []struct {
		name  string
		frame []byte
		want  bool
	}{
		{"a solicitation", solicitation(guest6.String()), true},
		{"a solicitation before it has an address", solicitation("::"), true},
		{"a request for an address", datagram6(request6(t, dhcpv6.MessageTypeSolicit).ToBytes()), true},
		{"a solicitation of another MAC", changed(solicitation("::"), 11, 0), false},
		{"a solicitation from a global address", solicitation("2001:db8::1"), false},
		{"a solicitation that came through a router", changed(solicitation("::"), etherHeader+7, 64), false},
		{"an advertisement", changed(solicitation("::"), etherHeader+ipv6Header, routerAdvert), false},
		{"a frame of IPv4", changed(solicitation("::"), 12, 8), false},
		{"a datagram to another port", changed(datagram6(nil), etherHeader+ipv6Header+3, 1), false},
		{"a datagram that is longer than its packet", changed(datagram6(nil), etherHeader+ipv6Header+5, 200), false},
		{"a packet that is longer than its frame", changed(solicitation("::"), etherHeader+5, 200), false},
		{"half of a frame", solicitation("::")[:30], false},
	} {
		_, ok := parse6(offer6, tt.frame)
		require.Equal(t, tt.want, ok, tt.name)
	}
}

func TestAnIncompleteOfferIsAnError(t *testing.T) {
	t.Parallel()
	for _, change := range []func(*network.Offer6){
		func(o *network.Offer6) { o.Tap = "" },
		func(o *network.Offer6) { o.MAC = "" },
		func(o *network.Offer6) { o.RouterMAC = "" },
		func(o *network.Offer6) { o.Router = netip.Addr{} },
		func(o *network.Offer6) { o.Address = netip.MustParsePrefix("10.0.2.2/24") },
	} {
		o := offer6
		change(&o)
		require.ErrorContains(t, Server{}.Serve6(t.Context(), o), "is not complete")
	}
}

// sent collects the frames to a guest.
type sent [][]byte

func (s *sent) Write(b []byte) (int, error) {
	*s = append(*s, b)
	return len(b), nil
}

// FuzzServe6 sends what a guest may send to the router.
func FuzzServe6(f *testing.F) {
	f.Add(solicitation("::"))
	for _, kind := range []dhcpv6.MessageType{dhcpv6.MessageTypeSolicit, dhcpv6.MessageTypeRebind, dhcpv6.MessageTypeConfirm, dhcpv6.MessageTypeInformationRequest} {
		f.Add(datagram6(request6(f, kind, has("2001:db8::7")).ToBytes()))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		s := server6{offer: offer6, resolver: resolver, log: discard}
		var out sent
		s.answer(&out, frame, time.Now())
		if len(out) > 1 {
			t.Fatalf("%d answers", len(out))
		}
		for _, got := range out {
			if net.HardwareAddr(got[:6]).String() != offer6.MAC {
				t.Fatalf("an answer to %x", got[:6])
			}
			if len(got) > 2*longest {
				t.Fatalf("an answer of %d bytes", len(got))
			}
		}
	})
}

var discard = slog.New(slog.DiscardHandler)
