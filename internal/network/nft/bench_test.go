package nft

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/network/networktest"
	"github.com/podvisor/podvisor/network"
)

// BenchmarkApply is what the rules of one interface add to the start of a VMI.
func BenchmarkApply(b *testing.B) {
	for name, cfg := range map[string]network.Config{
		"translation": translated(network.NAT{Link: "k6t-eth0", Loopback: true, Guests: []network.Guest{guest4, guest6}}),
		"masquerade":  {NAT: cases["both-families"].NAT, Filters: []network.Filter{routed}},
		"bridge":      cases["bridge"],
	} {
		b.Run(name, func(b *testing.B) {
			rules := 0
			for _, t := range tables(cfg) {
				for _, c := range t.Chains {
					rules += len(c.Rules)
				}
			}
			for b.Loop() {
				b.StopTimer()
				ns := networktest.Namespace(b)
				b.StartTimer()
				require.NoError(b, Apply(ns, cfg))
			}
			b.ReportMetric(float64(rules), "rules")
		})
	}
}
