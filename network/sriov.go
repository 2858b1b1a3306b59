package network

import "github.com/podvisor/podvisor/vmi"

// sriovBinding gives the guest a device of the node, which the pod was given: a
// virtual function of a network card. Nothing is bound in the pod's network
// namespace: the network plugin configures the function, and the launcher finds it in
// the environment of its pod.
//
// +podvisor:entry
type sriovBinding struct{}

// Serves says that the interface has the binding sriov.
func (sriovBinding) Serves(spec vmi.Interface) bool { return spec.SRIOV != nil }

// Bound is false: the binding changes nothing in the pod.
func (sriovBinding) Bound(Interface) bool { return false }

// Traits says that none is on the pod network.
func (sriovBinding) Traits() Traits { return Traits{} }

// Plan returns the config for the interface.
func (sriovBinding) Plan(i Interface) (Config, error) {
	if i.Network.Multus == nil {
		return Config{}, invalid(i.NetworkPath, "network %s: interface %s has the binding sriov, for which the pod network has no device: use a network of Multus",
			i.Network.Name, i.Spec.Name)
	}
	// Without an address in the spec it is the function's own, which is not known here.
	status := i.Status(i.MAC(""), nil)
	status.PodInterfaceName, status.QueueCount, status.LinkState = "", 0, ""
	return Config{
		Attachments: []Attachment{{Name: i.Spec.Name, MAC: status.MAC}},
		Interfaces:  []vmi.InterfaceStatus{status},
	}, nil
}
