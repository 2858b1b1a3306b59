package dhcp_test

import (
	"fmt"

	"github.com/podvisor/podvisor/internal/network/dhcp"
)

func ExampleParseResolvConf() {
	r := dhcp.ParseResolvConf([]byte("nameserver 10.96.0.10\nsearch default.svc.cluster.local cluster.local\n"))
	fmt.Println(r.Nameservers, r.Search)
	// Output: [10.96.0.10] [default.svc.cluster.local cluster.local]
}
