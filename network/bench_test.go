package network_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/network/link"
	"github.com/podvisor/podvisor/network/networktest"
	"github.com/podvisor/podvisor/network/nft"
)

// BenchmarkPlumb is what a start of a machine costs in its pod's namespace.
func BenchmarkPlumb(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		pod, _ := networktest.DualPod(b)
		b.StartTimer()
		s, err := link.Observe(pod)
		require.NoError(b, err)
		cfg, err := network.Plan(network.Input{Instance: machine(masquerade()), State: s, Owner: network.Owner{UID: 107, GID: 107}})
		require.NoError(b, err)
		require.NoError(b, link.Apply(pod, cfg))
		require.NoError(b, nft.Apply(pod, cfg.NAT))
	}
}
