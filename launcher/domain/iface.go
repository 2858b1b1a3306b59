package domain

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
)

// interfacePart are the network interfaces.
//
// +podvisor:entry
var interfacePart = Part{
	Name: "interfaces", Build: ifaces,
	Devices: func(l *libvirtxml.DomainDeviceList) []Device {
		return devicesOf(l.Interfaces, func(_ int, n *libvirtxml.DomainInterface) Device {
			d := Device{Name: "interface " + strings.TrimPrefix(n.Alias.Name, InterfaceAlias("")), Address: &n.Address}
			if n.Model != nil && isVirtio(n.Model.Type) {
				d.Virtio = &Virtio{Model: &n.Model.Type, Share: func() {
					if n.Driver == nil {
						n.Driver = &libvirtxml.DomainInterfaceDriver{}
					}
					n.Driver.IOMMU = switchedOn
				}}
			}
			return d
		})
	},
}

// ifaces adds the network interfaces of the spec.
func ifaces(b *Draft) error {
	var faults []error
	places := b.interfacePlaces()
	for n, i := range b.Spec.Devices.Interfaces {
		if i.State == vmi.InterfaceAbsent || i.IsDevice() {
			continue
		}
		at := slices.IndexFunc(b.Host.Interfaces, func(a network.Attachment) bool { return a.Name == i.Name })
		if at < 0 {
			faults = append(faults, fmt.Errorf("%s: interface %s is not bound in the pod", devicesPath.Child("interfaces").Index(n), i.Name))
			continue
		}
		b.Domain.Devices.Interfaces = append(b.Domain.Devices.Interfaces, iface(i, b.Host.Interfaces[at], places[InterfaceAlias(i.Name)]))
	}
	return errors.Join(faults...)
}

// iface is one interface.
func iface(i vmi.Interface, a network.Attachment, at Place) libvirtxml.DomainInterface {
	out := libvirtxml.DomainInterface{
		Source:  backend(a),
		Model:   &libvirtxml.DomainInterfaceModel{Type: model(i)},
		Alias:   &libvirtxml.DomainAlias{Name: InterfaceAlias(i.Name)},
		Address: pciAddress(at.PCI),
	}
	if a.Backend == "" {
		// The tap device exists, and libvirt does not configure it.
		out.Target = &libvirtxml.DomainInterfaceTarget{Dev: a.Tap, Managed: "no"}
	}
	if a.MAC != "" {
		out.MAC = &libvirtxml.DomainInterfaceMAC{Address: a.MAC}
	}
	if a.MTU > 0 {
		out.MTU = &libvirtxml.DomainInterfaceMTU{Size: uint(a.MTU)}
	}
	if i.BootOrder != nil {
		out.Boot = &libvirtxml.DomainDeviceBoot{Order: *i.BootOrder}
	} else {
		// A boot ROM takes a second of the guest's start.
		out.ROM = &libvirtxml.DomainROM{Enabled: "no"}
	}
	if a.Queues > 1 {
		out.Driver = &libvirtxml.DomainInterfaceDriver{Queues: uint(a.Queues)}
	}
	if i.State == vmi.InterfaceDown {
		out.Link = &libvirtxml.DomainInterfaceLink{State: "down"}
	}
	if i.ACPIIndex > 0 {
		out.ACPI = &libvirtxml.DomainDeviceACPI{Index: uint(i.ACPIIndex)}
	}
	return out
}

// backend is what carries the frames. The form "user" with the backend passt is none:
// libvirt 9.0 of Debian 12 refuses it, and launchers in pods have tap devices.
func backend(a network.Attachment) *libvirtxml.DomainInterfaceSource {
	switch a.Backend {
	case network.BackendUser:
		return &libvirtxml.DomainInterfaceSource{User: &libvirtxml.DomainInterfaceSourceUser{}}
	case network.BackendTCP:
		return &libvirtxml.DomainInterfaceSource{Client: &libvirtxml.DomainInterfaceSourceClient{
			Address: a.Server.Addr().String(), Port: uint(a.Server.Port()),
		}}
	}
	return &libvirtxml.DomainInterfaceSource{Ethernet: &libvirtxml.DomainInterfaceSourceEthernet{}}
}

func model(i vmi.Interface) string {
	if i.Model == "" || i.Model == vmi.InterfaceModelVirtio {
		return nonTransitional
	}
	return string(i.Model)
}
