package network_test

import (
	"github.com/podvisor/podvisor/vmi"
)

// machine is a machine with one interface on the pod network.
func machine(b vmi.InterfaceBinding) *vmi.VirtualMachineInstance {
	v := &vmi.VirtualMachineInstance{}
	v.Name, v.UID = "hello", "9f2f3c1e-4f5a-4f7b-8a39-3c6ee7a8e001"
	v.Spec.Domain.Devices.Interfaces = []vmi.Interface{{Name: "default", InterfaceBinding: b}}
	v.Spec.Networks = []vmi.Network{{Name: "default", NetworkSource: vmi.NetworkSource{Pod: &vmi.PodNetwork{}}}}
	return v
}

func masquerade() vmi.InterfaceBinding {
	return vmi.InterfaceBinding{Masquerade: &vmi.InterfaceMasquerade{}}
}
