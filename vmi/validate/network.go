package validate

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
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
		l = append(l, as(spec.Child("interfaces").String(), &field.Error{Type: field.ErrorTypeDuplicate, Field: at.String(),
			BadValue: "pod", Detail: "a VMI has at most one pod network: leave the others out"}))
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
		return definition(at.Child("multus", "networkName"), n.Multus.NetworkName)
	}
	var l field.ErrorList
	if _, err := n.Pod.Subnet4(); err != nil {
		l = append(l, field.Invalid(at.Child("pod", "vmNetworkCIDR"), n.Pod.VMNetworkCIDR, err.Error()))
	}
	if _, err := n.Pod.Subnet6(); err != nil {
		l = append(l, field.Invalid(at.Child("pod", "vmIPv6NetworkCIDR"), n.Pod.VMIPv6NetworkCIDR, err.Error()))
	}
	return l
}

// definition checks the name of a NetworkAttachmentDefinition.
func definition(at *field.Path, text string) field.ErrorList {
	namespace, name, qualified := strings.Cut(text, "/")
	if !qualified {
		namespace, name = "", text
	}
	var problems []string
	if qualified {
		problems = validation.IsDNS1123Label(namespace)
	}
	if problems = append(problems, validation.IsDNS1123Subdomain(name)...); len(problems) > 0 {
		return field.ErrorList{field.Invalid(at, text, "must be NAME or NAMESPACE/NAME of a NetworkAttachmentDefinition: "+problems[0])}
	}
	return nil
}
