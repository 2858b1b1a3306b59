package domain

import (
	"errors"
	"fmt"

	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
)

// ifaces are the machine's network interfaces.
func ifaces(specs []vmi.Interface, h Host) ([]libvirtxml.DomainInterface, error) {
	plumbed := map[string]network.Attachment{}
	for _, a := range h.Interfaces {
		plumbed[a.Name] = a
	}
	var all []libvirtxml.DomainInterface
	var faults []error
	for _, i := range specs {
		a, ok := plumbed[i.Name]
		if !ok {
			faults = append(faults, fmt.Errorf("interface %s is attached to nothing", i.Name))
			continue
		}
		all = append(all, iface(i, a))
	}
	return all, errors.Join(faults...)
}

// iface is one interface on a tap device that exists and stays as it is.
func iface(i vmi.Interface, a network.Attachment) libvirtxml.DomainInterface {
	out := libvirtxml.DomainInterface{
		Source: &libvirtxml.DomainInterfaceSource{Ethernet: &libvirtxml.DomainInterfaceSourceEthernet{}},
		Target: &libvirtxml.DomainInterfaceTarget{Dev: a.Tap, Managed: "no"},
		Model:  &libvirtxml.DomainInterfaceModel{Type: model(i)},
		// Nothing boots from the network, and its boot ROM takes a second.
		ROM:   &libvirtxml.DomainROM{Enabled: "no"},
		Alias: &libvirtxml.DomainAlias{Name: InterfaceAlias(i.Name)},
	}
	if a.MAC != "" {
		out.MAC = &libvirtxml.DomainInterfaceMAC{Address: a.MAC}
	}
	if a.MTU > 0 {
		out.MTU = &libvirtxml.DomainInterfaceMTU{Size: uint(a.MTU)}
	}
	return out
}

func model(i vmi.Interface) string {
	if i.Model == "" || i.Model == vmi.InterfaceModelVirtio {
		return nonTransitional
	}
	return string(i.Model)
}
