package metrics

import (
	"cmp"
	"slices"

	"github.com/podvisor/podvisor/vmi"
)

var vnicLabels = []string{"vnic_name", "binding_type", "network", "binding_name", "model"}

// vnics reads the interfaces that have a network.
func vnics(networks []vmi.Network, interfaces []vmi.Interface, add adder) {
	for _, i := range interfaces {
		at := slices.IndexFunc(networks, func(n vmi.Network) bool { return n.Name == i.Name })
		if at < 0 {
			continue
		}
		network := "pod networking"
		if m := networks[at].Multus; m != nil {
			network = m.NetworkName
		}
		add(1, i.Name, "core", network, binding(i.InterfaceBinding), cmp.Or(string(i.Model), "<none>"))
	}
}

func binding(b vmi.InterfaceBinding) string {
	switch {
	case b.Masquerade != nil:
		return "masquerade"
	case b.Bridge != nil:
		return "bridge"
	case b.SRIOV != nil:
		return "sriov"
	case b.PasstBinding != nil:
		return "passt"
	}
	return ""
}
