package nft

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/golden"
	"github.com/podvisor/podvisor/internal/network/networktest"
	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/network"
)

var (
	guest4 = network.Guest{
		Network: netip.MustParsePrefix("10.0.2.0/24"),
		Address: netip.MustParseAddr("10.0.2.2"), Gateway: netip.MustParseAddr("10.0.2.1"),
		Pod: []netip.Addr{netip.MustParseAddr("10.244.0.5")},
	}
	guest6 = network.Guest{
		Network: netip.MustParsePrefix("fd10:0:2::/120"),
		Address: netip.MustParseAddr("fd10:0:2::2"), Gateway: netip.MustParseAddr("fd10:0:2::1"),
		Pod: []netip.Addr{netip.MustParseAddr("fd00:244::5")},
	}
	everything = network.NAT{Link: "k6t-eth0", Loopback: true, Guests: []network.Guest{guest4}}
	second     = network.NAT{
		Link: "k6t-dbbba150db6", Guests: []network.Guest{
			{Network: netip.MustParsePrefix("10.0.3.0/24"), Address: netip.MustParseAddr("10.0.3.2"), Gateway: netip.MustParseAddr("10.0.3.1"), Pod: []netip.Addr{netip.MustParseAddr("10.100.1.5")}},
			{Network: netip.MustParsePrefix("fd10:0:3::/120"), Address: netip.MustParseAddr("fd10:0:3::2"), Gateway: netip.MustParseAddr("fd10:0:3::1"), Pod: []netip.Addr{netip.MustParseAddr("fd00:100:1::5")}},
		},
		Ports: []network.Port{{Protocol: "TCP", Number: 80}, {Protocol: "TCP", Number: 443}},
	}
	cases = map[string]network.Config{
		"everything":     {NAT: []network.NAT{everything}, Filters: []network.Filter{routed}},
		"one-port":       translated(network.NAT{Link: "k6t-eth0", Loopback: true, Guests: []network.Guest{guest4}, Ports: []network.Port{{Protocol: "TCP", Number: 80}}}),
		"ports":          translated(network.NAT{Link: "k6t-eth0", Loopback: true, Guests: []network.Guest{guest4}, Ports: []network.Port{{Protocol: "TCP", Number: 22}, {Protocol: "TCP", Number: 80}, {Protocol: "UDP", Number: 53}}}),
		"port-ranges":    translated(network.NAT{Link: "k6t-eth0", Loopback: true, Guests: []network.Guest{guest4}, Ports: []network.Port{{Protocol: "TCP", Number: 22}, {Protocol: "TCP", Number: 8000, Last: 8999}, {Protocol: "TCP", Number: 40000, Last: 65535}, {Protocol: "UDP", Number: 1, Last: 1023}}}),
		"both-families":  translated(network.NAT{Link: "k6t-eth0", Loopback: true, Guests: []network.Guest{guest4, guest6}}),
		"only-ipv6":      translated(network.NAT{Link: "k6t-eth0", Loopback: true, Guests: []network.Guest{guest6}}),
		"two-interfaces": translated(everything, second),
		"bridge":         {Filters: []network.Filter{bridged}},
		"bridge-asked": {Filters: []network.Filter{func() network.Filter {
			f := bridged
			f.Own, f.OwnMAC, f.Bridge = netip.MustParseAddr("169.254.75.10"), "00:29:4b:50:bf:b1", "k6t-eth0"
			return f
		}()}},
		"bridge-router": {Filters: []network.Filter{bridgedAnswered}},
		"router":        {Filters: []network.Filter{answered}},
		"no-addresses":  {Filters: []network.Filter{free}},
		"filters":       {Filters: []network.Filter{routed, free}},
	}
	routed   = network.Filter{Link: "tap0", MAC: "02:29:ef:a9:cb:99", Addresses: []netip.Addr{guest4.Address, guest6.Address}}
	answered = func() network.Filter {
		f := routed
		f.Router, f.RouterMAC = "ra0", "02:00:00:00:00:00"
		return f
	}()
	bridgedAnswered = func() network.Filter {
		f := bridged
		f.Router, f.RouterMAC = "ra0", "0a:58:0a:f4:00:01"
		return f
	}()
	// The MAC begins with zeros, which nft does not write.
	bridged = network.Filter{
		Link: "tap0", MAC: "00:00:0a:f4:00:05", Uplink: "eth0-nic",
		Addresses: []netip.Addr{netip.MustParseAddr("10.244.0.5"), netip.MustParseAddr("fd00:244::5")},
	}
	free = network.Filter{Link: "tapdbbba150db6", MAC: "0a:58:0a:64:01:05", Uplink: "dbbba150db6-nic"}
)

func translated(all ...network.NAT) network.Config { return network.Config{NAT: all} }

func TestRender(t *testing.T) {
	t.Parallel()
	for name, n := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden.Equal(t, "testdata/"+name+".nft", []byte(Render(n)))
		})
	}
	require.Empty(t, Render(network.Config{}))
	require.Empty(t, Render(translated(network.NAT{})))
}

// ruleset is what the program nft lists of a namespace.
func ruleset(t *testing.T, ns *os.File) string {
	t.Helper()
	return networktest.Run(t, ns, testenv.Program(t, "nft"), "list", "ruleset")
}

func TestTheTextIsWhatIsApplied(t *testing.T) {
	nft := testenv.Program(t, "nft")
	for name, n := range cases {
		t.Run(name, func(t *testing.T) {
			ours, theirs := networktest.Namespace(t), networktest.Namespace(t)
			require.NoError(t, Apply(ours, n))
			file := filepath.Join(t.TempDir(), "rules.nft")
			require.NoError(t, os.WriteFile(file, []byte(Render(n)), 0o644))
			networktest.Run(t, theirs, nft, "-f", file)
			want := ruleset(t, theirs)
			require.NotEmpty(t, want)
			require.Equal(t, want, ruleset(t, ours))

			require.NoError(t, Apply(ours, n))
			require.Equal(t, want, ruleset(t, ours), "applying twice changes nothing more")
		})
	}
}

func TestApplyReplacesOnlyItsOwnTables(t *testing.T) {
	nft := testenv.Program(t, "nft")
	ns := networktest.Namespace(t)
	networktest.Run(t, ns, nft, "add table ip nat; add chain ip nat other; add rule ip nat other counter")
	before := ruleset(t, ns)
	for _, name := range []string{"ports", "two-interfaces", "both-families", "bridge", "filters", "everything"} {
		require.NoError(t, Apply(ns, cases[name]))
		require.Equal(t, 1+strings.Count(Render(cases[name]), "table "), strings.Count(ruleset(t, ns), "table "), name)
	}
	require.NoError(t, Apply(ns, network.Config{}))
	require.Equal(t, before, ruleset(t, ns))
}

func TestThereIsRoomForTheRulesOfManyInterfaces(t *testing.T) {
	var cfg network.Config
	for n := range 32 {
		f := bridged
		f.Link, f.Uplink = fmt.Sprintf("tap%d", n), fmt.Sprintf("net%d", n)
		cfg.Filters = append(cfg.Filters, f)
	}
	ns := networktest.Namespace(t)
	require.NoError(t, Apply(ns, cfg))
	require.NoError(t, Apply(ns, cfg), "which replaces them")
	require.Equal(t, 32, strings.Count(ruleset(t, ns), "ether saddr != "))
}
