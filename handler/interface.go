package handler

import (
	"slices"
	"strings"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
)

// mostGuestOnly is how many interfaces of the guest are reported that are not in the
// spec.
const mostGuestOnly = 10

// interfaces are the interfaces of the VMI as they were bound, with what the guest says
// of them, and those that the guest alone has. Behind address translation the VMI's
// addresses are the pod's, whatever the guest says. A guest says what it likes: this is
// for people, and nothing is decided by it.
func interfaces(v *vmi.VirtualMachineInstance, among []network.Binding, bound []vmi.InterfaceStatus, said []protocol.Interface) []vmi.InterfaceStatus {
	out := slices.Clone(bound)
	own := 0
	for _, g := range said {
		at := slices.IndexFunc(out[:len(bound)], func(i vmi.InterfaceStatus) bool { return strings.EqualFold(i.MAC, g.MAC) && i.InterfaceName == "" })
		if at < 0 {
			if own++; own <= mostGuestOnly {
				out = append(out, addressed(vmi.InterfaceStatus{InterfaceName: g.Name, MAC: g.MAC, InfoSource: vmi.InfoSourceGuestAgent}, g.Addresses))
			}
			continue
		}
		i := &out[at]
		i.InterfaceName, i.InfoSource = g.Name, i.InfoSource+", "+vmi.InfoSourceGuestAgent
		if !translated(v, among, i.Name) && len(g.Addresses) > 0 {
			*i = addressed(*i, g.Addresses)
		}
	}
	for n := range bound {
		if attached(v, out[n].Name) {
			out[n].InfoSource += ", " + vmi.InfoSourceMultusStatus
		}
	}
	return out
}

// attached says that the status has the interface as one that Multus attached. It is
// virt-controller that reads this from the pod, before the VMI is handed over.
func attached(v *vmi.VirtualMachineInstance, name string) bool {
	return slices.ContainsFunc(v.Status.Interfaces, func(i vmi.InterfaceStatus) bool {
		return i.Name == name && strings.HasSuffix(i.InfoSource, vmi.InfoSourceMultusStatus)
	})
}

func addressed(i vmi.InterfaceStatus, addresses []string) vmi.InterfaceStatus {
	i.IP, i.IPs = "", slices.Clone(addresses)
	if len(i.IPs) > 0 {
		i.IP = i.IPs[0]
	}
	return i
}

// translated says that the addresses of the interface stand for others of the guest.
func translated(v *vmi.VirtualMachineInstance, among []network.Binding, name string) bool {
	return slices.ContainsFunc(v.Spec.Domain.Devices.Interfaces, func(i vmi.Interface) bool { return i.Name == name && network.TraitsOf(i, among).Translated })
}
