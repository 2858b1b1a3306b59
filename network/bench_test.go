package network_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/network/link"
	"github.com/podvisor/podvisor/internal/network/networktest"
	"github.com/podvisor/podvisor/internal/network/nft"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
)

// BenchmarkBind is what binding the interfaces of a VMI adds to its start.
func BenchmarkBind(b *testing.B) {
	for name, binding := range map[string]vmi.InterfaceBinding{"masquerade": masquerade, "bridge": bridge} {
		for _, n := range []int{1, 2, 8} {
			b.Run(fmt.Sprintf("%s-%d", name, n), func(b *testing.B) {
				v := instance(slices.Repeat([]vmi.InterfaceBinding{binding}, n)...)
				for b.Loop() {
					b.StopTimer()
					pod, _ := networktest.DualPod(b)
					networktest.AttachAll(b, pod, v)
					b.StartTimer()
					s, err := link.Observe(b.Context(), pod)
					require.NoError(b, err)
					cfg, err := network.Plan(network.Input{Instance: v, State: s, Owner: network.Owner{UID: 107, GID: 107}, Links: networktest.Links(v)})
					require.NoError(b, err)
					require.NoError(b, nft.Apply(pod, cfg))
					require.NoError(b, link.Apply(b.Context(), pod, cfg))
				}
			})
		}
	}
}

// BenchmarkPlan is the part of it that computes.
func BenchmarkPlan(b *testing.B) {
	v := instance(slices.Repeat([]vmi.InterfaceBinding{bridge}, 8)...)
	in := network.Input{Instance: v, State: fresh("lan1", "lan2", "lan3", "lan4", "lan5", "lan6", "lan7"), Links: networktest.Links(v)}
	for b.Loop() {
		_, err := network.Plan(in)
		require.NoError(b, err)
	}
}
