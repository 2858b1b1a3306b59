package network

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/validate"
)

// interfaces returns the interfaces of the VMI with their networks and names, in
// the order of the spec, without those that are absent.
func (in Input) interfaces() ([]Interface, error) {
	networks, faults := in.networks()
	path := field.NewPath("spec", "domain", "devices", "interfaces")
	var all []Interface
	used := map[string]bool{}
	for n, spec := range in.Instance.Spec.Domain.Devices.Interfaces {
		at := path.Index(n)
		if spec.State == vmi.InterfaceAbsent {
			used[spec.Name] = true
			continue
		}
		binding, err := asked(in.Bindings, at, spec)
		i, ok := networks[spec.Name]
		faults = append(append(faults, err), specFaults(at, spec, i.Network)...)
		switch {
		case used[spec.Name]:
			faults = append(faults, invalid(at.Child("name"), "interface %s: there are two of that name", spec.Name))
		case !ok:
			faults = append(faults, invalid(at.Child("name"), "interface %s: there is no network of that name", spec.Name))
		default:
			i.Spec, i.Path, i.Index, i.asked = spec, at, n, binding
			all = append(all, i)
		}
		used[spec.Name] = true
	}
	for n, net := range in.Instance.Spec.Networks {
		if !used[net.Name] {
			faults = append(faults, invalid(networkPath(n).Child("name"), "network %s: there is no interface of that name", net.Name))
		}
	}
	return all, errors.Join(append(faults, shared(all)...)...)
}

// networks returns the networks of the VMI by name, as interfaces without a spec.
func (in Input) networks() (map[string]Interface, []error) {
	var faults []error
	all := map[string]Interface{}
	for n, net := range in.Instance.Spec.Networks {
		at := networkPath(n)
		if _, ok := all[net.Name]; ok {
			faults = append(faults, invalid(at.Child("name"), "network %s: there are two of that name", net.Name))
			continue
		}
		i := Interface{Instance: in.Instance, State: in.State, Owner: in.Owner, Network: net, NetworkPath: at}
		switch link := in.Links[net.Name]; {
		case link != "":
			i.Names = NamesOf(net.Name, link)
		default:
			i.Names = NamesOf(net.Name, PodLinkName(net))
		}
		all[net.Name] = i
	}
	return all, faults
}

func networkPath(n int) *field.Path { return field.NewPath("spec", "networks").Index(n) }

// shared returns the faults of interfaces that have the name of a link in common
// with one before.
func shared(all []Interface) []error {
	var faults []error
	for n, i := range all {
		for _, other := range all[:n] {
			if i.Names == (Names{}) || other.Names == (Names{}) {
				continue
			}
			if i.Names.Pod == other.Names.Pod {
				faults = append(faults, invalid(i.NetworkPath, "network %s: the pod's link %s is that of network %s, and has room for one interface",
					i.Network.Name, i.Names.Pod, other.Network.Name))
				continue
			}
			for _, name := range i.Names.all() {
				if slices.Contains(other.Names.all(), name) {
					faults = append(faults, invalid(i.NetworkPath.Child("name"), "network %s: its link %s has the name of a link of network %s: rename one of the networks",
						i.Network.Name, name, other.Network.Name))
					break
				}
			}
		}
	}
	return faults
}

// specFaults says what is wrong with an interface for itself.
func specFaults(at *field.Path, i vmi.Interface, n vmi.Network) []error {
	var faults []error
	for _, e := range validate.Interface(at, &i, &n) {
		faults = append(faults, fmt.Errorf("%w: interface %s: %w", vmi.ErrInvalid, i.Name, e))
	}
	return faults
}
