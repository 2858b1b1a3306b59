package config_test

import (
	"fmt"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/config"
)

func Example() {
	k := &vmi.KubeVirt{}
	k.Spec.Configuration.Network = &vmi.NetworkConfiguration{DefaultNetworkInterface: "masquerade"}
	c, faults := config.Resolve(k)
	fmt.Println(c.Defaults.Binding, len(faults))

	k.Spec.Configuration.AdditionalGuestMemoryOverheadRatio = new("much")
	_, faults = config.Resolve(k)
	fmt.Println(faults[0].Field)
	// Output:
	// masquerade 0
	// spec.configuration.additionalGuestMemoryOverheadRatio
}
