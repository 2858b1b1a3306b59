package network_test

import (
	"fmt"

	"github.com/podvisor/podvisor/network"
)

// A plan needs no cluster and no privilege: it is made of what was observed.
func ExamplePlan() {
	cfg, err := network.Plan(network.Input{
		Instance: instance(masquerade),
		State: network.State{Links: []network.Link{{
			Index: 2, Name: "eth0", Kind: "veth", MTU: 1450, Up: true, Addresses: prefixes("10.244.0.5/24"),
		}}},
		Owner: network.Owner{UID: 107, GID: 107},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, l := range cfg.Links {
		fmt.Println(l.Kind, l.Name, l.Addresses)
	}
	fmt.Println("the guest gets", cfg.Attachments[0].DHCP.Address)
	fmt.Println("and may send from", cfg.Filters[0].Addresses)
	// Output:
	// bridge k6t-eth0 [10.0.2.1/24]
	// tun tap0 []
	// uplink eth0 []
	// the guest gets 10.0.2.2/24
	// and may send from [10.0.2.2]
}
