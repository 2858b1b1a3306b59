package defaults

import "github.com/podvisor/podvisor/vmi"

// defaultName is the name of the interface and the network that a machine gets
// when it lists none.
const defaultName = "default"

// networks connects a machine to the pod network if it says nothing about it.
func networks(s *vmi.VirtualMachineInstanceSpec, p Profile) {
	d := &s.Domain.Devices
	auto := d.AutoattachPodInterface == nil || *d.AutoattachPodInterface
	if auto && len(d.Interfaces) == 0 && len(s.Networks) == 0 {
		d.Interfaces = []vmi.Interface{{Name: defaultName}}
		s.Networks = []vmi.Network{{Name: defaultName, NetworkSource: vmi.NetworkSource{Pod: &vmi.PodNetwork{}}}}
	}
	for i := range d.Interfaces {
		if n := &d.Interfaces[i]; n.Binding == nil && n.InterfaceBinding == (vmi.InterfaceBinding{}) {
			n.InterfaceBinding = p.bindingTo(network(s, n.Name))
		}
	}
}

func network(s *vmi.VirtualMachineInstanceSpec, name string) *vmi.Network {
	for i := range s.Networks {
		if s.Networks[i].Name == name {
			return &s.Networks[i]
		}
	}
	return nil
}

// bindingTo is a bridge for networks that the machine has beside the pod's:
// there is nothing behind which it could hide.
func (p Profile) bindingTo(n *vmi.Network) vmi.InterfaceBinding {
	if n == nil || n.Pod == nil {
		return vmi.InterfaceBinding{Bridge: &vmi.InterfaceBridge{}}
	}
	return p.binding()
}
