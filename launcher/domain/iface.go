package domain

import (
	"errors"
	"fmt"
	"slices"

	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
)

// ifaces adds the network interfaces of the spec.
func ifaces(b *build) error {
	var faults []error
	places := b.interfacePlaces()
	for n, i := range b.spec.Devices.Interfaces {
		at := slices.IndexFunc(b.host.Interfaces, func(a network.Attachment) bool { return a.Name == i.Name })
		if at < 0 {
			faults = append(faults, fmt.Errorf("%s: interface %s is not bound in the pod", devicesPath.Child("interfaces").Index(n), i.Name))
			continue
		}
		b.domain.Devices.Interfaces = append(b.domain.Devices.Interfaces, iface(i, b.host.Interfaces[at], places[InterfaceAlias(i.Name)]))
	}
	return errors.Join(faults...)
}

// iface is one interface on a tap device that exists and that libvirt does not
// configure.
func iface(i vmi.Interface, a network.Attachment, at Place) libvirtxml.DomainInterface {
	out := libvirtxml.DomainInterface{
		Source: &libvirtxml.DomainInterfaceSource{Ethernet: &libvirtxml.DomainInterfaceSourceEthernet{}},
		Target: &libvirtxml.DomainInterfaceTarget{Dev: a.Tap, Managed: "no"},
		Model:  &libvirtxml.DomainInterfaceModel{Type: model(i)},
		// No guest boots from the network, and the boot ROM takes a second.
		ROM:     &libvirtxml.DomainROM{Enabled: "no"},
		Alias:   &libvirtxml.DomainAlias{Name: InterfaceAlias(i.Name)},
		Address: pciAddress(at.PCI),
	}
	if a.Backend == network.BackendUser {
		out.Source, out.Target = &libvirtxml.DomainInterfaceSource{User: &libvirtxml.DomainInterfaceSourceUser{}}, nil
	}
	if a.MAC != "" {
		out.MAC = &libvirtxml.DomainInterfaceMAC{Address: a.MAC}
	}
	if a.MTU > 0 {
		out.MTU = &libvirtxml.DomainInterfaceMTU{Size: uint(a.MTU)}
	}
	if i.ACPIIndex > 0 {
		out.ACPI = &libvirtxml.DomainDeviceACPI{Index: uint(i.ACPIIndex)}
	}
	return out
}

func model(i vmi.Interface) string {
	if i.Model == "" || i.Model == vmi.InterfaceModelVirtio {
		return nonTransitional
	}
	return string(i.Model)
}
