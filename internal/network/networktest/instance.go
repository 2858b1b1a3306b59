package networktest

import (
	"fmt"
	"os"
	"testing"

	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
)

// Bridge and Masquerade are the bindings of a spec.
var (
	Bridge     = vmi.InterfaceBinding{Bridge: &vmi.InterfaceBridge{}}
	Masquerade = vmi.InterfaceBinding{Masquerade: &vmi.InterfaceMasquerade{}}
)

// Instance is a VMI with an interface for each of the bindings: the first one,
// default, on the pod network, the others, lan1 and so on, on secondary networks.
// Those have guest networks of their own.
func Instance(bindings ...vmi.InterfaceBinding) *vmi.VirtualMachineInstance {
	v := &vmi.VirtualMachineInstance{}
	v.Name, v.UID = "hello", "9f2f3c1e-4f5a-4f7b-8a39-3c6ee7a8e001"
	for n, b := range bindings {
		net := vmi.Network{Name: "default", NetworkSource: vmi.NetworkSource{Pod: &vmi.PodNetwork{}}}
		if n > 0 {
			net.Name = fmt.Sprintf("lan%d", n)
			net.Pod.VMNetworkCIDR = fmt.Sprintf("10.0.%d.0/24", 2+n)
			net.Pod.VMIPv6NetworkCIDR = fmt.Sprintf("fd10:0:%d::/120", 2+n)
		}
		v.Spec.Networks = append(v.Spec.Networks, net)
		v.Spec.Domain.Devices.Interfaces = append(v.Spec.Domain.Devices.Interfaces, vmi.Interface{Name: net.Name, InterfaceBinding: b})
	}
	return v
}

// Links are the names of the pod's links of the secondary networks of a VMI that
// [Instance] made.
func Links(v *vmi.VirtualMachineInstance) map[string]string {
	links := map[string]string{}
	for _, net := range v.Spec.Networks {
		if net.Name != "default" {
			links[net.Name] = network.PodLinkName(vmi.Network{Name: net.Name})
		}
	}
	return links
}

// AttachAll attaches the pod to the secondary networks of a VMI that [Instance]
// made, numbered from 1, and returns the other ends. The pod has
// SecondaryAddress/24 in each, and a default route that is worse than those
// before.
func AttachAll(t testing.TB, pod *os.File, v *vmi.VirtualMachineInstance) []*os.File {
	t.Helper()
	links := Links(v)
	var lans []*os.File
	for n, net := range v.Spec.Networks {
		if n > 0 {
			lans = append(lans, Attach(t, pod, links[net.Name], n, SecondaryAddress(n)+"/24"))
			IP(t, pod, fmt.Sprintf("route add default via %s metric %d", SecondaryGateway(n), 100*n))
		}
	}
	return lans
}
