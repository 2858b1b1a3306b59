package nft

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/golden"
	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/network/networktest"
)

var (
	guest4 = network.Guest{
		Address: netip.MustParseAddr("10.0.2.2"), Gateway: netip.MustParseAddr("10.0.2.1"),
		Pod: []netip.Addr{netip.MustParseAddr("10.244.0.5")},
	}
	guest6 = network.Guest{
		Address: netip.MustParseAddr("fd10:0:2::2"), Gateway: netip.MustParseAddr("fd10:0:2::1"),
		Pod: []netip.Addr{netip.MustParseAddr("fd00:244::5")},
	}
	everything = network.NAT{Link: "k6t-eth0", Loopback: true, Guests: []network.Guest{guest4}}
	second     = network.NAT{
		Link: "k6t-dbbba150db6", Guests: []network.Guest{
			{Address: netip.MustParseAddr("10.0.3.2"), Gateway: netip.MustParseAddr("10.0.3.1"), Pod: []netip.Addr{netip.MustParseAddr("10.100.1.5")}},
			{Address: netip.MustParseAddr("fd10:0:3::2"), Gateway: netip.MustParseAddr("fd10:0:3::1"), Pod: []netip.Addr{netip.MustParseAddr("fd00:100:1::5")}},
		},
		Ports: []network.Port{{Protocol: "TCP", Number: 80}, {Protocol: "TCP", Number: 443}},
	}
	cases = map[string][]network.NAT{
		"everything":     {everything},
		"one-port":       {{Link: "k6t-eth0", Loopback: true, Guests: []network.Guest{guest4}, Ports: []network.Port{{Protocol: "TCP", Number: 80}}}},
		"ports":          {{Link: "k6t-eth0", Loopback: true, Guests: []network.Guest{guest4}, Ports: []network.Port{{Protocol: "TCP", Number: 22}, {Protocol: "TCP", Number: 80}, {Protocol: "UDP", Number: 53}}}},
		"both-families":  {{Link: "k6t-eth0", Loopback: true, Guests: []network.Guest{guest4, guest6}}},
		"only-ipv6":      {{Link: "k6t-eth0", Loopback: true, Guests: []network.Guest{guest6}}},
		"two-interfaces": {everything, second},
	}
)

func TestRender(t *testing.T) {
	t.Parallel()
	for name, n := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden.Equal(t, "testdata/"+name+".nft", []byte(Render(n)))
		})
	}
	require.Empty(t, Render(nil))
	require.Empty(t, Render([]network.NAT{{}}))
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
	for _, name := range []string{"ports", "two-interfaces", "both-families", "everything"} {
		require.NoError(t, Apply(ns, cases[name]))
		require.Equal(t, 1+strings.Count(Render(cases[name]), "table "), strings.Count(ruleset(t, ns), "table "), name)
	}
	require.NoError(t, Apply(ns, nil))
	require.Equal(t, before, ruleset(t, ns))
}
