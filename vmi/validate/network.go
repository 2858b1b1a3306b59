package validate

import (
	"fmt"
	"net/netip"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
)

// networks checks the networks, and that each has an interface.
func networks(spec *field.Path, s *vmi.VirtualMachineInstanceSpec) field.ErrorList {
	var l field.ErrorList
	at := spec.Child("networks")
	used, seen := map[string]bool{}, map[string]bool{}
	for _, i := range s.Domain.Devices.Interfaces {
		used[i.Name] = true
	}
	pods, defaultNetworks := 0, 0
	for i := range s.Networks {
		n, here := &s.Networks[i], at.Index(i)
		if seen[n.Name] {
			l = append(l, repeated(here.Child("name"), n.Name, "network"))
		}
		seen[n.Name] = true
		if !used[n.Name] {
			l = append(l, field.Required(here.Child("name"), "no interface is connected to the network "+quote(n.Name)+": add one of this name to domain.devices.interfaces"))
		}
		if n.Pod != nil {
			pods++
		}
		if n.Multus != nil && n.Multus.Default {
			defaultNetworks++
		}
		l = append(l, network(here, n)...)
	}
	if pods > 1 {
		l = append(l, as(spec.Child("interfaces").String(), &field.Error{Type: field.ErrorTypeDuplicate, Field: at.String(), BadValue: "pod", Detail: "a VMI has at most one pod network: leave the others out"}))
	}
	if defaultNetworks > 1 {
		l = append(l, field.Invalid(at, plural(defaultNetworks, "default network"), "at most one network has multus.default: true: set it to false for the others"))
	}
	if pods > 0 && defaultNetworks > 0 {
		l = append(l, field.Invalid(at, "pod and multus.default", "a multus network with default: true takes the place of the pod network: leave one out"))
	}
	return l
}

func network(at *field.Path, n *vmi.Network) field.ErrorList {
	if count(n.Pod != nil, n.Multus != nil) != 1 {
		return field.ErrorList{field.Required(at, "must have exactly one of pod and multus")}
	}
	if n.Multus != nil {
		if n.Multus.NetworkName == "" {
			return field.ErrorList{as(at.String(), field.Required(at.Child("multus", "networkName"), "name the NetworkAttachmentDefinition, as NAME or NAMESPACE/NAME"))}
		}
		return nil
	}
	l := subnet(at.Child("pod", "vmNetworkCIDR"), n.Pod.VMNetworkCIDR, "IPv4", netip.Addr.Is4, 30)
	return append(l, subnet(at.Child("pod", "vmIPv6NetworkCIDR"), n.Pod.VMIPv6NetworkCIDR, "IPv6", netip.Addr.Is6, 126)...)
}

// subnet checks a network of one family that has room for guest and gateway.
func subnet(at *field.Path, s, family string, is func(netip.Addr) bool, longest int) field.ErrorList {
	if s == "" {
		return nil
	}
	p, err := netip.ParsePrefix(s)
	if err != nil || !is(p.Addr()) {
		return field.ErrorList{field.Invalid(at, s, "must be an "+family+" network, as address/length")}
	}
	if p.Bits() > longest {
		return field.ErrorList{field.Invalid(at, s, fmt.Sprintf("must have room for the guest and its gateway: at most /%d", longest))}
	}
	return nil
}
