package network_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/network/networktest"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
)

func TestNames(t *testing.T) {
	t.Parallel()
	require.Equal(t, "eth0", network.PodLinkName(podNetwork("blue")))
	require.Equal(t, "eth0", network.PodLinkName(vmi.Network{Name: "blue", NetworkSource: vmi.NetworkSource{Multus: &vmi.MultusNetwork{Default: true}}}))
	require.Equal(t, "pod16477688c0e", network.PodLinkName(vmi.Network{Name: "blue", NetworkSource: vmi.NetworkSource{Multus: &vmi.MultusNetwork{}}}), "a contract: it must never change")
	require.Equal(t, network.Names{Pod: "eth0", NIC: "eth0-nic", Interim: "eth0-new", Bridge: network.PodBridge, Tap: "tap0", Router: "ra0"}, network.NamesOf("blue", "eth0"))
	require.Equal(t, network.Names{
		Pod: "pod16477688c0e", NIC: "16477688c0e-nic", Interim: "16477688c0e-new", Bridge: "k6t-16477688c0e", Tap: "tap16477688c0e", Router: "ra-16477688c0e",
	}, network.NamesOf("blue", "pod16477688c0e"))
	require.Equal(t, "net1", network.NamesOf("blue", "net1").Pod)
}

func FuzzNames(f *testing.F) {
	f.Add("default", "blue", "green")
	f.Add("", "eth0", "tap0")
	f.Add("eth0-nic", "k6t-eth0", "0")
	f.Fuzz(func(t *testing.T, first, second, third string) {
		seen := map[string]string{}
		for n, name := range []string{first, second, third} {
			link := "eth0"
			if n > 0 {
				link = network.PodLinkName(vmi.Network{Name: name})
			}
			if n == 2 && name == second {
				return
			}
			names := network.NamesOf(name, link)
			for _, l := range []string{names.Pod, names.NIC, names.Interim, names.Bridge, names.Tap, names.Router} {
				if len(l) == 0 || len(l) > 15 {
					t.Fatalf("network %q: the link %q has %d bytes", name, l, len(l))
				}
				if other, ok := seen[l]; ok {
					t.Fatalf("networks %q and %q: both have a link %s", other, name, l)
				}
				seen[l] = name
			}
		}
	})
}

func TestNetworksWhoseNamesHaveTheSameHashAreRefused(t *testing.T) {
	t.Parallel()
	const a, b = "net-887663", "net-5451374"
	v := instance(bridge, bridge, bridge)
	for n, name := range []string{a, b} {
		v.Spec.Networks[n+1].Name, v.Spec.Domain.Devices.Interfaces[n+1].Name = name, name
	}
	require.Equal(t, network.PodLinkName(vmi.Network{Name: a}), network.PodLinkName(vmi.Network{Name: b}))

	_, err := network.Plan(network.Input{Instance: v, State: fresh(a), Links: networktest.Links(v)})
	require.ErrorIs(t, err, vmi.ErrInvalid)
	require.ErrorContains(t, err, "spec.networks[2]: network net-5451374: the pod's link pod7bcc42e155c is that of network net-887663")

	_, err = network.Plan(network.Input{Instance: v, State: fresh(a), Links: map[string]string{a: "net1", b: "net2"}})
	require.ErrorIs(t, err, vmi.ErrInvalid)
	require.ErrorContains(t, err, "spec.networks[2].name: network net-5451374: its link 7bcc42e155c-nic has the name of a link of network net-887663: rename one of the networks")
}
