package nft_test

import (
	"fmt"
	"net/netip"

	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/network/nft"
)

func ExampleRender() {
	fmt.Print(nft.Render([]network.NAT{{
		Link:     "k6t-eth0",
		Loopback: true,
		Guests: []network.Guest{{
			Address: netip.MustParseAddr("10.0.2.2"),
			Gateway: netip.MustParseAddr("10.0.2.1"),
			Pod:     []netip.Addr{netip.MustParseAddr("10.244.0.5")},
		}},
		Ports: []network.Port{{Protocol: "TCP", Number: 22}, {Protocol: "TCP", Number: 80}},
	}}))
	// Output:
	// table ip podvisor {
	// 	chain prerouting {
	// 		type nat hook prerouting priority dstnat; policy accept;
	// 		ip daddr 10.244.0.5 tcp dport { 22, 80 } dnat to 10.0.2.2
	// 	}
	//
	// 	chain output {
	// 		type nat hook output priority -100; policy accept;
	// 		ip daddr 127.0.0.1 tcp dport { 22, 80 } dnat to 10.0.2.2
	// 		ip daddr 10.244.0.5 tcp dport { 22, 80 } dnat to 10.0.2.2
	// 	}
	//
	// 	chain postrouting {
	// 		type nat hook postrouting priority srcnat; policy accept;
	// 		ip saddr 10.0.2.2 masquerade
	// 		oifname "k6t-eth0" ip saddr 127.0.0.1 snat to 10.0.2.1
	// 	}
	// }
}
