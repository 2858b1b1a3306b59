package network

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/podvisor/podvisor/vmi"
)

// PodBridge is the name of the bridge between the pod network's interface and
// the guest. Service meshes take the guest's traffic from it.
const PodBridge = "k6t-eth0"

const (
	// podLink is the name of a pod's interface, which is a part of what
	// Kubernetes promises.
	podLink = "eth0"
	// nicLink is the pod's interface after another link took its name.
	nicLink = "eth0-nic"
	tapLink = "tap0"

	// RememberTable is the routing table that remembers the routes of a pod's
	// interface while that one cannot have any. No rule leads to it.
	RememberTable = 7510
)

// Input is what a plan is made of.
type Input struct {
	// Instance is the machine, with defaults applied.
	Instance *vmi.VirtualMachineInstance
	// State is the pod's network namespace, plumbed or not or anything between.
	State State
	// Owner is who the launcher runs as, seen from the host.
	Owner Owner
}

// Plan decides how the interfaces of a machine are connected to the networks of
// its pod. An error names every fault at once. It wraps [vmi.ErrInvalid] if the
// machine's spec is wrong, alone or for this pod; otherwise the pod is not (yet)
// as it must be.
//
// The plan for a namespace that an earlier plan was applied to, even in part, is
// that plan: also if the instance has another binding now, because a default
// changed meanwhile. A guest may be using what is there.
func Plan(in Input) (Config, error) {
	pairs, err := pair(in.Instance)
	if err != nil || len(pairs) == 0 {
		return Config{}, err
	}
	p := pairs[0]
	pod, err := findPod(in.State)
	if err != nil {
		return Config{}, err
	}
	b := binding{Input: in, iface: p.iface, network: p.network, pod: pod}
	was := in.State.bound()
	switch {
	case was == boundByMasquerade, was == boundByNothing && p.iface.Masquerade != nil:
		return b.masquerade()
	default:
		return b.bridge()
	}
}

// binding is one interface and all that a plan for it depends on.
type binding struct {
	Input
	iface   vmi.Interface
	network vmi.PodNetwork
	pod     pod
}

// invalid makes a fault of the spec of what it is told.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", vmi.ErrInvalid, fmt.Sprintf(format, args...))
}

// paired is an interface with the network that it is connected to.
type paired struct {
	iface   vmi.Interface
	network vmi.PodNetwork
}

// pair finds the network of each interface.
func pair(v *vmi.VirtualMachineInstance) ([]paired, error) {
	var faults []error
	networks := map[string]vmi.Network{}
	for _, n := range v.Spec.Networks {
		if _, ok := networks[n.Name]; ok {
			faults = append(faults, invalid("network %s: there are two of that name", n.Name))
		}
		if n.Pod == nil {
			faults = append(faults, invalid("network %s: its kind is not known", n.Name))
		}
		networks[n.Name] = n
	}
	var pairs []paired
	used := map[string]bool{}
	for _, i := range v.Spec.Domain.Devices.Interfaces {
		faults = append(faults, bindingFaults(i)...)
		if used[i.Name] {
			faults = append(faults, invalid("interface %s: there are two of that name", i.Name))
			continue
		}
		used[i.Name] = true
		n, ok := networks[i.Name]
		if !ok {
			faults = append(faults, invalid("interface %s: there is no network of that name", i.Name))
			continue
		}
		if n.Pod != nil {
			pairs = append(pairs, paired{iface: i, network: *n.Pod})
		}
	}
	for _, n := range v.Spec.Networks {
		if !used[n.Name] {
			faults = append(faults, invalid("network %s: there is no interface of that name", n.Name))
		}
	}
	if len(pairs) > 1 {
		faults = append(faults, invalid("%d interfaces are connected to the pod network, which has one place", len(pairs)))
	}
	return pairs, errors.Join(faults...)
}

// bindingFaults says what is wrong with an interface for itself.
func bindingFaults(i vmi.Interface) []error {
	var faults []error
	switch bridge, masquerade := i.Bridge != nil, i.Masquerade != nil; {
	case !bridge && !masquerade:
		faults = append(faults, invalid("interface %s: its binding is not known", i.Name))
	case bridge && masquerade:
		faults = append(faults, invalid("interface %s: it has two bindings", i.Name))
	}
	if _, err := parseMAC(i.MacAddress); i.MacAddress != "" && err != nil {
		faults = append(faults, invalid("interface %s: MAC address %s: %v", i.Name, i.MacAddress, err))
	}
	for _, p := range i.Ports {
		if p.Port < 1 || p.Port > 65535 {
			faults = append(faults, invalid("interface %s: port %d is not within 1 and 65535", i.Name, p.Port))
		}
		if p.Protocol != "TCP" && p.Protocol != "UDP" && p.Protocol != "" {
			faults = append(faults, invalid("interface %s: port %d: protocol %q is neither TCP nor UDP", i.Name, p.Port, p.Protocol))
		}
	}
	return faults
}

// guestMAC is the address that the spec gives the guest, or else otherwise.
func (b binding) guestMAC(otherwise string) string {
	if m, err := parseMAC(b.iface.MacAddress); err == nil {
		return m
	}
	return otherwise
}

// tap is the device that connects the guest to the bridge.
func (b binding) tap() LinkConfig {
	return LinkConfig{
		Name: tapLink, Kind: Tap, MAC: b.linkMAC(tapLink), MTU: b.pod.mtu, Master: PodBridge, Owner: b.Owner,
		Sysctls: []Sysctl{noLinkLocal(tapLink)},
	}
}

// linkMAC is the address of one of our links. No interface of a machine has a
// slash in its name, so no guest has the same.
func (b binding) linkMAC(link string) string { return MAC(b.Instance.UID, "link/"+link) }

// status is the interface as the machine's status shows it: in every binding it
// is the pod's addresses that the guest is reached under.
func (b binding) status(mac string) vmi.InterfaceStatus {
	s := vmi.InterfaceStatus{
		Name: b.iface.Name, MAC: mac, PodInterfaceName: podLink,
		InfoSource: "domain", QueueCount: 1, LinkState: "up",
	}
	for _, a := range b.pod.addresses {
		s.IPs = append(s.IPs, a.Addr().String())
	}
	if len(s.IPs) > 0 {
		s.IP = s.IPs[0]
	}
	return s
}

// noLinkLocal keeps a link that is no end of anything from giving itself IPv6
// addresses.
func noLinkLocal(link string) Sysctl {
	return Sysctl{Key: "net/ipv6/conf/" + link + "/addr_gen_mode", Value: "1"}
}

// first returns the first address of the family of like.
func first(addresses []netip.Prefix, is4 bool) (netip.Prefix, bool) {
	for _, a := range addresses {
		if a.Addr().Is4() == is4 {
			return a, true
		}
	}
	return netip.Prefix{}, false
}
