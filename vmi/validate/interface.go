package validate

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
)

var (
	interfaceName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	mac           = regexp.MustCompile(`^([0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}$|^([0-9A-Fa-f]{2}-){5}[0-9A-Fa-f]{2}$`)
	noMAC         = regexp.MustCompile(`^(00[:-]){5}00$`)
	gatewayMAC    = regexp.MustCompile(`^02([:-]00){5}$`)
	models        = []vmi.InterfaceModel{
		vmi.InterfaceModelE1000, vmi.InterfaceModelE1000e, vmi.InterfaceModelIGB, vmi.InterfaceModelNE2kPCI, vmi.InterfaceModelPCnet,
		vmi.InterfaceModelRTL8139, vmi.InterfaceModelVirtio,
	}
)

// interfaces checks the interfaces, and that each has a network.
func interfaces(at *field.Path, s *vmi.VirtualMachineInstanceSpec, lim Limits) field.ErrorList {
	var l field.ErrorList
	nets, seen := map[string]*vmi.Network{}, map[string]bool{}
	for i := range s.Networks {
		if n := &s.Networks[i]; nets[n.Name] == nil {
			nets[n.Name] = n
		}
	}
	for i := range s.Domain.Devices.Interfaces {
		n, here := &s.Domain.Devices.Interfaces[i], at.Index(i)
		net := nets[n.Name]
		if seen[n.Name] {
			l = append(l, repeated(here.Child("name"), n.Name, "interface"))
		}
		seen[n.Name] = true
		if net == nil {
			l = append(l, field.Invalid(here.Child("name"), n.Name, "there is no network of this name: add one to networks, or remove the interface"))
		}
		l = append(l, nic(here, n)...)
		l = append(l, binding(here, n, net, lim)...)
		l = append(l, state(here.Child("state"), n, net)...)
		if net != nil && net.Pod != nil {
			l = append(l, ports(here, n, lim)...)
		}
		if o := n.DHCPOptions; o != nil {
			l = append(l, dhcp(here.Child("dhcpOptions"), o)...)
		}
	}
	return l
}

// Interface checks one interface by itself. Its ports are judged on the network of the pod
// and with the masquerade binding: elsewhere they have no effect. A planner of networks calls
// it, which may get an interface that no webhook has seen.
func Interface(at *field.Path, n *vmi.Interface, net *vmi.Network) field.ErrorList {
	l, seen := nic(at, n), map[string]bool{}
	if n.Masquerade == nil && (net == nil || net.Pod == nil) {
		return l
	}
	for i := range n.Ports {
		l = append(l, port(at.Child("ports").Index(i), &n.Ports[i], seen)...)
	}
	return append(l, portRanges(at.Child("portRanges"), n.PortRanges)...)
}

// nic checks one interface without its ports.
func nic(at *field.Path, n *vmi.Interface) field.ErrorList {
	var l field.ErrorList
	if !interfaceName.MatchString(n.Name) {
		l = append(l, field.Invalid(at.Child("name"), n.Name, "must consist of the characters A-Z a-z 0-9 _ -"))
	}
	if n.Model != "" && !slices.Contains(models, n.Model) {
		l = append(l, field.NotSupported(at.Child("model"), n.Model, models))
	}
	if n.PciAddress != "" && !pciAddress.MatchString(n.PciAddress) {
		l = append(l, field.Invalid(at.Child("pciAddress"), n.PciAddress, pciForm))
	}
	if n.ACPIIndex < 0 {
		l = append(l, field.Invalid(at.Child("acpiIndex"), n.ACPIIndex, "must not be negative"))
	}
	if m, here := n.MacAddress, at.Child("macAddress"); m != "" {
		switch {
		case !mac.MatchString(m):
			l = append(l, field.Invalid(here, m, "must be a MAC address, such as 02:00:00:12:34:56"))
		case noMAC.MatchString(m):
			l = append(l, field.Invalid(here, m, "must not be zero: choose another, or leave it out to get one"))
		case n.Masquerade != nil && gatewayMAC.MatchString(m):
			l = append(l, field.Invalid(here, m, "is the gateway's with the masquerade binding: choose another"))
		case multicast(m):
			l = append(l, field.Invalid(here, m, "must not be a multicast address: its first byte is odd"))
		}
	}
	return l
}

// multicast says that the lowest bit of the first byte is set.
func multicast(mac string) bool {
	switch mac[1] {
	case '1', '3', '5', '7', '9', 'b', 'B', 'd', 'D', 'f', 'F':
		return true
	}
	return false
}

// binding checks how an interface is bound to its network. KubeVirt reports a
// binding that does not fit at the interface's name. An interface that names no
// binding gets one by default.
func binding(at *field.Path, n *vmi.Interface, net *vmi.Network, lim Limits) field.ErrorList {
	if l := discontinued(at, n); len(l) > 0 {
		return l
	}
	var l field.ErrorList
	misfit := func(name, message string) {
		l = append(l, as(at.Child("name").String(), field.Invalid(at.Child(name), n.Name, message)))
	}
	switch methods := len(n.Bindings()); {
	case methods > 0 && n.Binding != nil:
		l = append(l, field.Invalid(at.Child("binding"), n.Binding.Name, "a plugin excludes bridge, masquerade, sriov and passtBinding: leave one out"))
	case methods > 1:
		l = append(l, field.Invalid(at, plural(methods, "binding"), "must have one of bridge, masquerade, sriov, passtBinding and binding: leave the others out"))
	}
	onPod, offPod := net != nil && net.Pod != nil, net != nil && net.Pod == nil
	if n.Masquerade != nil && offPod {
		misfit("masquerade", "is for the pod network only: use bridge for others")
	}
	if n.Bridge != nil && onPod && lim.NoBridgeOnPodNetwork {
		misfit("bridge", "is switched off for the pod network in this cluster's configuration: use masquerade")
	}
	if n.PasstBinding != nil && lim.Features.NoPasst {
		misfit("passtBinding", "is switched off in this cluster's configuration: use masquerade")
	} else if n.PasstBinding != nil && offPod {
		misfit("passtBinding", "is for the pod network only: use bridge for others")
	}
	return l
}

// discontinued refuses bindings of old manifests that are not served any more.
func discontinued(at *field.Path, n *vmi.Interface) field.ErrorList {
	var l field.ErrorList
	for _, b := range []struct {
		name string
		set  bool
		use  string
	}{
		{"slirp", n.DeprecatedSlirp != nil, "masquerade"}, {"macvtap", n.DeprecatedMacvtap != nil, "bridge"}, {"passt", n.DeprecatedPasst != nil, "passtBinding or masquerade"},
	} {
		if b.set {
			l = append(l, field.Invalid(at.Child(b.name), n.Name, "this binding has been discontinued: use "+b.use))
		}
	}
	return l
}

func state(at *field.Path, n *vmi.Interface, net *vmi.Network) field.ErrorList {
	l := oneOf(at, n.State, vmi.InterfaceUp, vmi.InterfaceDown, vmi.InterfaceAbsent)
	switch {
	case n.IsDevice() && (n.State == vmi.InterfaceUp || n.State == vmi.InterfaceDown):
		l = append(l, field.Invalid(at, n.State, "a device of the node has no link that could be switched: leave it out"))
	case n.State == vmi.InterfaceAbsent && !n.IsRemovable():
		l = append(l, field.Invalid(at, n.State, "needs the binding "+strings.Join(vmi.RemovableBindings(), " or ")+": interfaces with others cannot be removed from a running VMI"))
	case n.State == vmi.InterfaceAbsent && net != nil && (net.Pod != nil || net.Multus != nil && net.Multus.Default):
		l = append(l, field.Invalid(at, n.State, "the VMI's default network cannot be removed: leave state out"))
	}
	return l
}

// The numbers that a network may give DHCP options of its own.
const (
	firstPrivateOption = 224
	lastPrivateOption  = 254
)

func dhcp(at *field.Path, o *vmi.DHCPOptions) field.ErrorList {
	var l field.ErrorList
	seen := map[int]bool{}
	for i, p := range o.PrivateOptions {
		here := at.Child("privateOptions").Index(i).Child("option")
		if p.Option < firstPrivateOption || p.Option > lastPrivateOption {
			l = append(l, as(specOf(at), field.Invalid(here, p.Option, "must be from 224 to 254, which are the numbers of private options")))
		}
		if seen[p.Option] {
			l = append(l, as(specOf(at), field.Invalid(here, p.Option, "is there twice: leave one out")))
		}
		seen[p.Option] = true
	}
	for i, s := range o.NTPServers {
		if a, err := netip.ParseAddr(s); err != nil || !a.Unmap().Is4() {
			l = append(l, field.Invalid(at.Child("ntpServers").Index(i), s, "must be an IPv4 address"))
		}
	}
	return l
}
