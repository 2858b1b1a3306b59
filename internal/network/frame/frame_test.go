package frame_test

import (
	"encoding/hex"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/network/frame"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
)

const (
	mac  = "02:00:00:00:77:01"
	rarp = "ffffffffffff" + "020000007701" + "8035" + "0001080006040003" + "020000007701" + "00000000" + "020000007701" + "00000000" + padding
	// Padding brings messages of ARP to the length of the shortest frame.
	padding = "000000000000000000000000000000000000"
)

// arpOf is the announcement of an address of IPv4.
func arpOf(address string) string {
	return "ffffffffffff" + "020000007701" + "0806" + "0001080006040001" + "020000007701" + address + "000000000000" + address + padding
}

func TestAnnouncements(t *testing.T) {
	t.Parallel()
	filter := network.Filter{Link: "tap1", Uplink: "lan-nic", MAC: mac}
	reported := func(addresses ...string) []vmi.InterfaceStatus {
		return []vmi.InterfaceStatus{{MAC: "02:00:00:00:99:99", IPs: []string{"192.0.2.99"}}, {MAC: "02:00:00:00:77:01", IPs: addresses}}
	}
	with := func(change func(*network.Filter)) network.Filter {
		f := filter
		change(&f)
		return f
	}
	for _, tt := range []struct {
		name     string
		filter   network.Filter
		reported []vmi.InterfaceStatus
		want     []string
	}{
		{"one whose addresses are not known announces its MAC address", filter, nil, []string{rarp}},
		{"one that may have any address announces what is reported", filter, reported("192.168.77.10", "192.168.77.11"), []string{rarp, arpOf("c0a84d0a"), arpOf("c0a84d0b")}},
		{"IPv6 by neighbour discovery", filter, reported("2001:db8::5", "2001:db8::5"), []string{rarp,
			"333300000001" + "020000007701" + "86dd" + "60000000" + "0020" + "3a" + "ff" +
				"20010db8000000000000000000000005" + "ff020000000000000000000000000001" +
				"8800" + "8222" + "20000000" + "20010db8000000000000000000000005" + "0201" + "020000007701",
		}},
		{"what is no address of one host is left out", filter, reported("nonsense", "", "0.0.0.0", "255.255.255.255", "127.0.0.1", "224.0.0.1", "::", "::1", "ff02::1", "::ffff:192.0.2.1"), []string{rarp}},
		{
			"one that may have certain addresses alone announces those",
			with(func(f *network.Filter) { f.Addresses = []netip.Addr{netip.MustParseAddr("192.168.77.10")} }), reported("192.0.2.7"),
			[]string{rarp, arpOf("c0a84d0a")},
		},
		{"one behind address translation announces nothing", with(func(f *network.Filter) { f.Uplink = "" }), reported("192.0.2.7"), nil},
		{"one without a MAC address announces nothing", with(func(f *network.Filter) { f.MAC = "" }), nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, f := range frame.Announcements([]network.Filter{tt.filter}, tt.reported) {
				require.Equal(t, "lan-nic", f.Link)
				got = append(got, hex.EncodeToString(f.Bytes))
			}
			require.Equal(t, tt.want, got)
			for _, f := range frame.Ports([]network.Filter{tt.filter}) {
				require.Equal(t, rarp, hex.EncodeToString(f.Bytes), "a port is held without addresses")
			}
			require.Len(t, frame.Ports([]network.Filter{tt.filter}), min(1, len(tt.want)))
		})
	}
	require.Len(t, frame.Announcements([]network.Filter{filter}, reported(many(100)...)), 1+16, "a guest cannot have any number announced")
	require.Len(t, frame.Pauses(), 5)
}

func many(n int) (out []string) {
	a := netip.MustParseAddr("10.0.0.1")
	for range n {
		out, a = append(out, a.String()), a.Next()
	}
	return out
}

func TestProbes(t *testing.T) {
	t.Parallel()
	c := func(pod, peer string) frame.Connection {
		return frame.Connection{Pod: netip.MustParseAddrPort(pod), Peer: netip.MustParseAddrPort(peer)}
	}
	got := frame.Probes("eth0", []frame.Connection{c("10.244.0.5:80", "192.0.2.1:40000"), c("[fd00::5]:80", "[2001:db8::1]:40000")})
	var text []string
	for _, f := range got {
		require.Equal(t, "eth0", f.Link)
		text = append(text, hex.EncodeToString(f.Bytes))
	}
	const none = "000000000000000000000000"
	require.Equal(t, []string{
		none + "0800" + "450000280000400040066dd6" + "0af40005c0000201" + "00509c40" + "00000000" + "00000000" + "50100400" + "424a0000" + "000000000000",
		none + "0800" + "450000280000400040066dd6" + "0af40005c0000201" + "00509c40" + "00000000" + "80000000" + "50100400" + "c2490000" + "000000000000",
		none + "0800" + "450000280000400040066dd6" + "0af40005c0000201" + "00509c40" + "80000000" + "00000000" + "50100400" + "c2490000" + "000000000000",
		none + "0800" + "450000280000400040066dd6" + "0af40005c0000201" + "00509c40" + "80000000" + "80000000" + "50100400" + "42490000" + "000000000000",
		none + "86dd" + "6000000000140640" + "fd000000000000000000000000000005" + "20010db8000000000000000000000001" + "00509c40" + "00000000" + "00000000" + "50100400" + "e4840000",
		none + "86dd" + "6000000000140640" + "fd000000000000000000000000000005" + "20010db8000000000000000000000001" + "00509c40" + "00000000" + "80000000" + "50100400" + "64840000",
		none + "86dd" + "6000000000140640" + "fd000000000000000000000000000005" + "20010db8000000000000000000000001" + "00509c40" + "80000000" + "00000000" + "50100400" + "64840000",
		none + "86dd" + "6000000000140640" + "fd000000000000000000000000000005" + "20010db8000000000000000000000001" + "00509c40" + "80000000" + "80000000" + "50100400" + "e4830000",
	}, text)
}
