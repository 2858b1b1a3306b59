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

// sriovPart are the interfaces that are devices of the node. Their places are those of
// all devices of the node.
//
// +podvisor:entry
var sriovPart = Part{Name: "sriov", Build: sriov}

// sriov adds the interfaces with the binding sriov: each gets the next function that
// the pod was given, in the order of the networks, in which Multus configures them.
func sriov(b *Draft) error {
	var faults []error
	interfaces := b.Spec.Devices.Interfaces
	places := b.interfacePlaces()
	given := b.givenFunctions()
	for _, net := range b.VMI.Spec.Networks {
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
		b.Domain.Devices.Hostdevs = append(b.Domain.Devices.Hostdevs, d)
	}
	return errors.Join(faults...)
}

// virtualFunctions are those of a pod: the variables that name them, the addresses that
// are left of each, and what is known of whose they are.
type virtualFunctions struct {
	variables []string
	left      map[string][]string
	resources map[string]string // by the name of the network
}

// givenFunctions are those that the environment names. The plugin has a second variable for
// each resource, with facts in JSON.
func (b *Draft) givenFunctions() virtualFunctions {
	f := virtualFunctions{left: map[string][]string{}, resources: map[string]string{}}
	for _, name := range slices.Sorted(maps.Keys(b.Host.HostDevices)) {
		value := b.Host.HostDevices[name]
		if of, ok := strings.CutPrefix(name, vmi.NetworkResourceVariable); ok {
			f.resources[of] = value
		}
		addresses := strings.Split(value, ",")
		if strings.HasPrefix(name, NetworkVariable) && pciAddresses.MatchString(addresses[0]) {
			f.variables, f.left[name] = append(f.variables, name), addresses
		}
	}
	return f
}

// next is the function for the network.
func (f *virtualFunctions) next(net vmi.Network, at Place) (libvirtxml.DomainHostdev, error) {
	variable, err := f.variable(net)
	if err != nil {
		return libvirtxml.DomainHostdev{}, err
	}
	left := f.left[variable]
	if len(left) == 0 {
		return libvirtxml.DomainHostdev{}, fmt.Errorf("interface %s: %s has fewer devices than the VMI has interfaces with the binding sriov: "+
			"ask for one of each in spec.domain.resources.limits", net.Name, variable)
	}
	f.left[variable] = left[1:]
	return hostDevice(net.Name, left[0], NetworkVariable, at)
}

// variable is the one that names the functions of the network's resource. Where the
// resource is not known, as in a pod that asks for it by the VMI's own limits, there must
// be one resource only.
func (f *virtualFunctions) variable(net vmi.Network) (string, error) {
	of := ""
	if net.Multus != nil {
		of = net.Multus.NetworkName
	}
	if r, ok := f.resources[net.Name]; ok {
		n := slices.IndexFunc(f.variables, func(v string) bool { return variableName(v) == NetworkVariable+variableName(r) })
		if n < 0 {
			return "", fmt.Errorf("interface %s: no variable %s%s with a PCI address is in the environment of the pod: "+
				"the device plugin of %s, the resource of the network %s, gives no devices for guests: "+
				"bind them to vfio-pci on the node", net.Name, NetworkVariable, variableName(r), r, of)
		}
		return f.variables[n], nil
	}
	switch len(f.variables) {
	case 0:
		return "", fmt.Errorf("interface %s: no variable %s<resource> in the environment of the pod has a PCI address: no device plugin gave the pod a device for the network %s: "+
			"give the NetworkAttachmentDefinition the annotation k8s.v1.cni.cncf.io/resourceName, or name the resource in spec.domain.resources.limits", net.Name, NetworkVariable, of)
	case 1:
		return f.variables[0], nil
	}
	return "", fmt.Errorf("interface %s: the pod has devices of several resources, %s, and which of them is for the network %s is not known: "+
		"give the NetworkAttachmentDefinition the annotation k8s.v1.cni.cncf.io/resourceName", net.Name, strings.Join(f.variables, " and "), of)
}

// variableName is a resource as the plugin writes it in the name of a variable. Its
// versions do not replace the same characters.
func variableName(resource string) string {
	return strings.NewReplacer("/", "_", ".", "_", "-", "_").Replace(strings.ToUpper(resource))
}
