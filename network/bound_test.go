package network_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
)

// plumbed is a fresh namespace with these links more.
func plumbed(more ...network.Link) network.State {
	s := fresh()
	s.Links = append(s.Links, more...)
	return s
}

func TestABindingStaysWhenTheDefaultChanges(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		state  network.State
		wanted vmi.InterfaceBinding
		nat    bool
	}{
		"nothing is there: as the machine has it":         {fresh(), bridge(), false},
		"nothing is there, masquerade":                    {fresh(), masquerade(), true},
		"the gateway of masquerade":                       {plumbed(network.Link{Name: "k6t-eth0", Kind: "bridge", Addresses: prefixes("10.0.2.1/24")}), bridge(), true},
		"the address server of bridge":                    {plumbed(network.Link{Name: "k6t-eth0", Kind: "bridge", Addresses: prefixes("169.254.75.10/32")}), masquerade(), false},
		"routes that bridge remembers":                    {plumbed(network.Link{Name: "k6t-eth0", Kind: "bridge", Remembered: []network.Route{route("0.0.0.0/0", "10.244.0.1")}}), masquerade(), false},
		"the stand-in of bridge":                          {plumbed(network.Link{Name: "k6t-eth0", Kind: "bridge"}, network.Link{Name: "eth0-new", Kind: "bridge"}), masquerade(), false},
		"a link without an address, which both have once": {plumbed(network.Link{Name: "k6t-eth0", Kind: "bridge"}), masquerade(), true},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := network.Plan(network.Input{Instance: machine(tt.wanted), State: tt.state})
			require.NoError(t, err)
			require.Equal(t, tt.nat, cfg.NAT.Link != "")
		})
	}
}
