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
	fmt.Print(nft.Render(cfg))
	// Output:
	// bridge k6t-eth0 [10.0.2.1/24]
	// tun tap0 []
	// uplink eth0 []
	// the guest gets 10.0.2.2/24
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
	// 		type nat hook postrouting priority 100; policy accept;
	// 		ip saddr 10.0.2.2 masquerade
	// 		oifname "k6t-eth0" ip saddr 127.0.0.1 snat to 10.0.2.1
	// 	}
	// }
	//
	// table bridge podvisor {
	// 	chain prerouting {
	// 		type filter hook prerouting priority -300; policy accept;
	// 		iifname "tap0" goto tap0
	// 	}
	//
	// 	chain input {
	// 		type filter hook input priority -200; policy accept;
	// 	}
	//
	// 	chain tap0 {
	// 		ether saddr != 02:29:ef:a9:cb:99 drop
	// 		ether type ip ip saddr 0.0.0.0 ip daddr 255.255.255.255 udp sport 68 udp dport 67 @th,288,48 0x0229efa9cb99 accept
	// 		ether type ip udp sport 67 drop
	// 		ether type ip udp dport 68 drop
	// 		ether type ip ip saddr 10.0.2.2 accept
	// 		ether type ip6 udp sport 547 drop
	// 		ether type ip6 udp dport 546 drop
	// 		ether type ip6 icmpv6 type nd-router-advert drop
	// 		ether type ip6 icmpv6 type nd-redirect drop
	// 		ether type ip6 icmpv6 type nd-neighbor-solicit jump tap0-ns
	// 		ether type ip6 icmpv6 type nd-neighbor-advert jump tap0-na
	// 		ether type ip6 icmpv6 type nd-router-solicit jump tap0-rs
	// 		ether type ip6 icmpv6 type mld2-listener-report ip6 saddr :: accept
	// 		ether type ip6 meta l4proto != ipv6-icmp ip6 saddr fe80::29:efff:fea9:cb99 accept
	// 		ether type ip6 meta l4proto ipv6-icmp ip6 saddr fe80::29:efff:fea9:cb99 accept
	// 		ether type arp arp htype 1 arp ptype ip arp hlen 6 arp plen 4 arp saddr ether 02:29:ef:a9:cb:99 arp saddr ip 10.0.2.2 accept
	// 		ether type arp arp htype 1 arp ptype ip arp hlen 6 arp plen 4 arp saddr ether 02:29:ef:a9:cb:99 arp saddr ip 0.0.0.0 arp daddr ip 10.0.2.2 accept
	// 		drop
	// 	}
	//
	// 	chain tap0-ns {
	// 		ether type ip6 ip6 nexthdr != ipv6-icmp drop
	// 		ether type ip6 ip6 length != 24 ip6 length != 32 drop
	// 		ether type ip6 ip6 saddr :: goto tap0-dad
	// 		ether type ip6 ip6 length 32 @th,192,64 != 0x01010229efa9cb99 drop
	// 	}
	//
	// 	chain tap0-dad {
	// 		ether type ip6 ip6 length 32 @th,192,16 != 0x0e01 drop
	// 		@th,64,128 0xfe800000000000000029effffea9cb99 accept
	// 		drop
	// 	}
	//
	// 	chain tap0-na {
	// 		ether type ip6 ip6 nexthdr != ipv6-icmp drop
	// 		ether type ip6 ip6 length != 24 ip6 length != 32 drop
	// 		ether type ip6 ip6 length 32 @th,192,64 != 0x02010229efa9cb99 drop
	// 		@th,64,128 0xfe800000000000000029effffea9cb99 return
	// 		drop
	// 	}
	//
	// 	chain tap0-rs {
	// 		ether type ip6 ip6 nexthdr != ipv6-icmp drop
	// 		ether type ip6 ip6 length != 8 ip6 length != 16 drop
	// 		ether type ip6 ip6 length 16 @th,64,64 != 0x01010229efa9cb99 drop
	// 		ether type ip6 ip6 length 8 ip6 saddr :: accept
	// 	}
	// }
}
