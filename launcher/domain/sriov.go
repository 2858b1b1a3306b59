package domain

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/vmi"
)

// NetworkVariable begins the names of the environment variables in which the device
// plugin of SR-IOV says which virtual functions the pod has: PCI addresses.
const NetworkVariable = "PCIDEVICE_"

// sriov adds the interfaces with the binding sriov: each gets the next function that
// the pod was given, in the order of the networks, in which Multus configures them.
func sriov(b *build) error {
	var faults []error
	interfaces := b.spec.Devices.Interfaces
	places := b.interfacePlaces()
	given := b.givenFunctions()
	for _, net := range b.vmi.Spec.Networks {
		n := slices.IndexFunc(interfaces, func(i vmi.Interface) bool { return i.Name == net.Name && i.SRIOV != nil })
		if n < 0 {
			continue
		}
		i := interfaces[n]
		d, err := given.next(net, places[InterfaceAlias(i.Name)])
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", devicesPath.Child("interfaces").Index(n), err))
			continue
		}
		d.Alias = &libvirtxml.DomainAlias{Name: InterfaceAlias(i.Name)}
		if i.BootOrder != nil {
			d.Boot = &libvirtxml.DomainDeviceBoot{Order: *i.BootOrder}
		}
		b.domain.Devices.Hostdevs = append(b.domain.Devices.Hostdevs, d)
	}
	return errors.Join(faults...)
}

// virtualFunctions are those of a pod: the variables that name them, and the
// addresses that are left of those.
type virtualFunctions struct {
	variables []string
	left      []string
}

// givenFunctions are those that the environment names. The plugin has a second variable for
// each resource, with facts in JSON.
func (b *build) givenFunctions() virtualFunctions {
	var f virtualFunctions
	for _, name := range slices.Sorted(maps.Keys(b.host.HostDevices)) {
		addresses := strings.Split(b.host.HostDevices[name], ",")
		if strings.HasPrefix(name, NetworkVariable) && pciAddresses.MatchString(addresses[0]) {
			f.variables, f.left = append(f.variables, name), append(f.left, addresses...)
		}
	}
	return f
}

// next is the function for the network.
func (f *virtualFunctions) next(net vmi.Network, at Place) (libvirtxml.DomainHostdev, error) {
	of := ""
	if net.Multus != nil {
		of = net.Multus.NetworkName
	}
	switch {
	case len(f.variables) == 0:
		return libvirtxml.DomainHostdev{}, fmt.Errorf("interface %s: no variable %s<resource> in the environment of the pod has a PCI address: no device plugin gave the pod a device for the network %s: "+
			"name in spec.domain.resources.limits the resource that the NetworkAttachmentDefinition has as annotation k8s.v1.cni.cncf.io/resourceName", net.Name, NetworkVariable, of)
	case len(f.variables) > 1:
		return libvirtxml.DomainHostdev{}, fmt.Errorf("interface %s: the pod has devices of several resources, %s, and which of them is for the network %s is not known: "+
			"use networks whose NetworkAttachmentDefinitions have the same resource", net.Name, strings.Join(f.variables, " and "), of)
	case len(f.left) == 0:
		return libvirtxml.DomainHostdev{}, fmt.Errorf("interface %s: %s has fewer devices than the VMI has interfaces with the binding sriov: ask for one of each in spec.domain.resources.limits", net.Name, f.variables[0])
	}
	address := f.left[0]
	f.left = f.left[1:]
	return hostDevice(net.Name, address, NetworkVariable, at)
}
