package network_test

import (
	"fmt"

	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/network/nft"
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
	fmt.Print(nft.Render(cfg.NAT))
	// Output:
	// bridge k6t-eth0 [10.0.2.1/24]
	// tun tap0 []
	// uplink eth0 []
	// the guest gets 10.0.2.2/24
	// table ip podvisor {
	// 	chain prerouting {
	// 		type nat hook prerouting priority dstnat; policy accept;
	// 		ip daddr 10.244.0.5 dnat to 10.0.2.2
	// 	}
	//
	// 	chain output {
	// 		type nat hook output priority -100; policy accept;
	// 		ip daddr 127.0.0.1 dnat to 10.0.2.2
	// 		ip daddr 10.244.0.5 dnat to 10.0.2.2
	// 	}
	//
	// 	chain postrouting {
	// 		type nat hook postrouting priority srcnat; policy accept;
	// 		ip saddr 10.0.2.2 masquerade
	// 		oifname "k6t-eth0" ip saddr 127.0.0.1 snat to 10.0.2.1
	// 	}
	// }
}
