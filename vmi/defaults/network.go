package defaults

import "github.com/podvisor/podvisor/vmi"

// defaultName is the name of the interface and the network that a VMI gets
// when it lists none.
const defaultName = "default"

// networks connects a VMI that lists no networks, and binds its interfaces. One
// that is listed without a binding gets a bridge whatever the cluster prefers: it is
// stored as it was written, and must not become another one while its VMI runs.
func networks(s *vmi.VirtualMachineInstanceSpec, p Profile) {
	connected(s, p)
	d := &s.Domain.Devices
	for i := range d.Interfaces {
		if n := &d.Interfaces[i]; n.Binding == nil && n.InterfaceBinding == (vmi.InterfaceBinding{}) {
			n.Bridge = &vmi.InterfaceBridge{}
		}
	}
}

// connected connects a VMI that lists no networks to the pod network, as the cluster
// prefers.
func connected(s *vmi.VirtualMachineInstanceSpec, p Profile) {
	d := &s.Domain.Devices
	auto := d.AutoattachPodInterface == nil || *d.AutoattachPodInterface
	if auto && len(d.Interfaces) == 0 && len(s.Networks) == 0 {
		d.Interfaces = []vmi.Interface{{Name: defaultName, InterfaceBinding: p.binding()}}
		s.Networks = []vmi.Network{{Name: defaultName, NetworkSource: vmi.NetworkSource{Pod: &vmi.PodNetwork{}}}}
	}
}
