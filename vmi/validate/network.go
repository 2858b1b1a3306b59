package validate

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
)

// networks checks the networks, and that each has an interface.
func networks(at *field.Path, s *vmi.VirtualMachineInstanceSpec) field.ErrorList {
	var l field.ErrorList
	used, seen := map[string]bool{}, map[string]bool{}
	for _, i := range s.Domain.Devices.Interfaces {
		used[i.Name] = true
	}
	pods := 0
	for i := range s.Networks {
		n, here := &s.Networks[i], at.Index(i)
		if seen[n.Name] {
			l = append(l, field.Duplicate(here.Child("name"), n.Name))
		}
		seen[n.Name] = true
		if !used[n.Name] {
			l = append(l, field.Invalid(here.Child("name"), n.Name, "no interface is connected to this network"))
		}
		if n.Pod == nil {
			l = append(l, field.Required(here, "must have exactly one source: pod"))
			continue
		}
		if pods++; pods > 1 {
			l = append(l, field.Invalid(here.Child("pod"), n.Name, "a machine has at most one pod network"))
		}
		l = append(l, subnet(here.Child("pod", "vmNetworkCIDR"), n.Pod.VMNetworkCIDR, "IPv4", netip.Addr.Is4, 30)...)
		l = append(l, subnet(here.Child("pod", "vmIPv6NetworkCIDR"), n.Pod.VMIPv6NetworkCIDR, "IPv6", netip.Addr.Is6, 126)...)
	}
	return l
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

var (
	interfaceName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	mac           = regexp.MustCompile(`^([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}$`)
	noMAC         = regexp.MustCompile(`^(00[:-]){5}00$`)
	gatewayMAC    = regexp.MustCompile(`^02([:-]00){5}$`)
	models        = []string{"e1000", "e1000e", "igb", "ne2k_pci", "pcnet", "rtl8139", "virtio"}
)

// interfaces checks the interfaces, and that each has a network.
func interfaces(at *field.Path, s *vmi.VirtualMachineInstanceSpec) field.ErrorList {
	var l field.ErrorList
	nets, seen, ports := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, n := range s.Networks {
		nets[n.Name] = true
	}
	for i := range s.Domain.Devices.Interfaces {
		n, here := &s.Domain.Devices.Interfaces[i], at.Index(i)
		if seen[n.Name] {
			l = append(l, field.Duplicate(here.Child("name"), n.Name))
		}
		seen[n.Name] = true
		if !nets[n.Name] {
			l = append(l, field.Invalid(here.Child("name"), n.Name, "there is no network of this name"))
		}
		l = append(l, nic(here, n)...)
		for p := range n.Ports {
			l = append(l, port(here.Child("ports").Index(p), &n.Ports[p], ports)...)
		}
	}
	return l
}

// nic checks one interface by itself.
func nic(at *field.Path, n *vmi.Interface) field.ErrorList {
	var l field.ErrorList
	if !interfaceName.MatchString(n.Name) {
		l = append(l, field.Invalid(at.Child("name"), n.Name, "must consist of the characters A-Z a-z 0-9 _ -"))
	}
	if (n.Bridge != nil) == (n.Masquerade != nil) {
		l = append(l, field.Invalid(at, n.Name, "must have exactly one binding: bridge or masquerade"))
	}
	if n.Model != "" && !slices.Contains(models, n.Model) {
		l = append(l, field.NotSupported(at.Child("model"), n.Model, models))
	}
	if m := n.MacAddress; m != "" {
		switch {
		case !mac.MatchString(m):
			l = append(l, field.Invalid(at.Child("macAddress"), m, "must be a MAC address, such as 02:00:00:12:34:56"))
		case noMAC.MatchString(m):
			l = append(l, field.Invalid(at.Child("macAddress"), m, "must not be zero"))
		case n.Masquerade != nil && gatewayMAC.MatchString(m):
			l = append(l, field.Invalid(at.Child("macAddress"), m, "is the gateway's with the masquerade binding"))
		case multicast(m):
			l = append(l, field.Invalid(at.Child("macAddress"), m, "must not be a multicast address: its first byte is odd"))
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

// port checks one port. Names in seen are taken, by any interface: they are
// ports of one pod.
func port(at *field.Path, p *vmi.Port, seen map[string]bool) field.ErrorList {
	l := field.ErrorList{}
	for _, m := range validation.IsValidPortNum(int(p.Port)) {
		l = append(l, field.Invalid(at.Child("port"), p.Port, m))
	}
	if p.Protocol != "" && p.Protocol != "TCP" && p.Protocol != "UDP" {
		l = append(l, field.NotSupported(at.Child("protocol"), p.Protocol, []string{"TCP", "UDP"}))
	}
	if p.Name == "" {
		return l
	}
	l = append(l, invalid(at.Child("name"), p.Name, validation.IsValidPortName(p.Name))...)
	if seen[p.Name] {
		l = append(l, field.Duplicate(at.Child("name"), p.Name))
	}
	seen[p.Name] = true
	return l
}
