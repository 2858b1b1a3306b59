package nft_test

import (
	"fmt"
	"net/netip"

	"github.com/podvisor/podvisor/internal/network/nft"
	"github.com/podvisor/podvisor/network"
)

func ExampleRender() {
	fmt.Print(nft.Render(network.Config{NAT: []network.NAT{{
		Link:     "k6t-eth0",
		Loopback: true,
		Guests: []network.Guest{{
			Address: netip.MustParseAddr("10.0.2.2"),
			Network: netip.MustParsePrefix("10.0.2.0/24"),
			Gateway: netip.MustParseAddr("10.0.2.1"),
			Pod:     []netip.Addr{netip.MustParseAddr("10.244.0.5")},
		}},
		Ports: []network.Port{{Protocol: "TCP", Number: 22}, {Protocol: "TCP", Number: 80}},
	}}}))
	// Output:
	// table ip podvisor {
	// 	chain guest {
	// 		type filter hook prerouting priority -150; policy accept;
	// 		iifname "k6t-eth0" ip daddr 127.0.0.0/8 drop
	// 		iifname "k6t-eth0" ct direction reply accept
	// 		iifname "k6t-eth0" ip daddr 10.0.2.1 meta l4proto icmp accept
	// 		iifname "k6t-eth0" udp dport 67 accept
	// 		iifname "k6t-eth0" ip daddr 169.254.75.0/24 drop
	// 		iifname "k6t-eth0" ip daddr 224.0.0.0/3 drop
	// 		iifname "k6t-eth0" ip daddr 10.0.2.0/24 drop
	// 	}
	//
	// 	chain prerouting {
	// 		type nat hook prerouting priority -100; policy accept;
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
	// 		type nat hook postrouting priority 100; policy accept;
	// 		ip saddr 10.0.2.2 masquerade
	// 		oifname "k6t-eth0" ip saddr 127.0.0.1 snat to 10.0.2.1
	// 	}
	//
	// 	chain local {
	// 		type filter hook input priority -150; policy accept;
	// 		iifname "k6t-eth0" ct direction reply accept
	// 		iifname "k6t-eth0" ip daddr 10.0.2.1 meta l4proto icmp accept
	// 		iifname "k6t-eth0" udp dport 67 accept
	// 		iifname "k6t-eth0" ip daddr 10.244.0.5 accept
	// 		iifname "k6t-eth0" drop
	// 	}
	// }
}
