package network

import (
	"cmp"
	"net/netip"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
)

// Binding is one way to bind an interface of a VMI to a link of its pod. Its
// methods compute and touch nothing. They are called from several goroutines.
type Binding interface {
	// Serves says that the spec of an interface asks for this binding.
	Serves(spec vmi.Interface) bool
	// Bound says that i.State shows that the interface is bound by this binding,
	// even in part. A Binding that leaves no mark in the namespace returns false.
	Bound(i Interface) bool
	// Plan returns the config for this interface alone. For a namespace that this
	// config was applied to, even in part, it returns the same config. An error
	// that wraps [vmi.ErrInvalid] says that the spec is wrong; after any other
	// error the plan is tried again with a newer state.
	Plan(i Interface) (Config, error)
	// Traits are what all interfaces with this binding have in common.
	Traits() Traits
}

// Traits are what can be asked of a binding without a plan.
type Traits struct {
	// TakesOver says that the guest has the MAC address and the addresses that the pod
	// has on the pod network.
	TakesOver bool
	// Translated says that the addresses of the pod stand for those of the guest, so
	// that its traffic passes what is put into the pod, as by a service mesh.
	Translated bool
	// Movable says that the guest goes on when the pod that it has on the pod network
	// is another one, with other addresses. On other networks it does in any case.
	Movable bool
}

// TraitsOf are those of the binding that the spec of an interface asks for, or none if
// that is not among the bindings. Nil: [Bindings].
func TraitsOf(spec vmi.Interface, among []Binding) Traits {
	if among == nil {
		among = Bindings()
	}
	for _, b := range among {
		if b.Serves(spec) {
			return b.Traits()
		}
	}
	return Traits{}
}

// Interface is one interface of a VMI and all that a plan for it depends on. It
// must not be changed.
type Interface struct {
	// Instance is the VMI.
	Instance *vmi.VirtualMachineInstance
	// Spec is the interface in the VMI's spec, at Path, which is number Index of
	// the VMI's interfaces.
	Spec  vmi.Interface
	Path  *field.Path
	Index int
	// Network is the network of the same name, at NetworkPath.
	Network     vmi.Network
	NetworkPath *field.Path
	// Names are the names of the interface's links.
	Names Names
	// State is the pod's network namespace, with the links of all interfaces.
	State State
	// Owner is the launcher's user.
	Owner Owner

	asked Binding
}

// MAC is the address that the spec gives the guest, or else otherwise.
func (i Interface) MAC(otherwise string) string {
	return cmp.Or(kernelMAC(i.Spec.MacAddress), otherwise)
}

// LinkMAC is the address of a link in the pod that is made for this interface.
// No interface of a VMI has a slash in its name, so no guest has the same.
func (i Interface) LinkMAC(link string) string { return MAC(i.Instance.UID, "link/"+link) }

// Tap is the tap device of the interface as a port of its bridge.
func (i Interface) Tap(mtu int) LinkConfig {
	return LinkConfig{
		Name: i.Names.Tap, Kind: Tap, MAC: i.LinkMAC(i.Names.Tap), MTU: mtu, Master: i.Names.Bridge, Owner: i.Owner, MultiQueue: i.Queues() > 1,
		CheckOffloads: true, Sysctls: noEnd(i.Names.Tap),
	}
}

// mostQueues is how many queues the kernel gives a tap device (MAX_TAP_QUEUES).
const mostQueues = 256

// Queues is how many queues the guest's interface has: one for each processor if the
// spec asks for several, which virtio alone can have, and otherwise one.
func (i Interface) Queues() int {
	d := &i.Instance.Spec.Domain
	if on := d.Devices.NetworkInterfaceMultiQueue; on == nil || !*on || i.Spec.Model != "" && i.Spec.Model != vmi.InterfaceModelVirtio {
		return 1
	}
	return int(min(d.CPU.VCPUs(), mostQueues))
}

// attachment is the interface as the launcher attaches it, with this MAC and MTU.
func (i Interface) attachment(mac string, mtu int) Attachment {
	a := Attachment{Name: i.Spec.Name, Tap: i.Names.Tap, MAC: mac, MTU: mtu}
	if n := i.Queues(); n > 1 {
		a.Queues = n
	}
	return a
}

// Status is the interface as the VMI's status shows it: the guest has this MAC
// and is reached by these addresses.
func (i Interface) Status(mac string, addresses []netip.Prefix) vmi.InterfaceStatus {
	s := vmi.InterfaceStatus{
		Name: i.Spec.Name, MAC: mac, PodInterfaceName: i.Names.Pod,
		InfoSource: vmi.InfoSourceDomain, QueueCount: int32(i.Queues()), LinkState: string(vmi.InterfaceUp),
	}
	if i.Spec.State == vmi.InterfaceDown {
		s.LinkState = string(vmi.InterfaceDown)
	}
	for _, a := range addresses {
		s.IPs = append(s.IPs, a.Addr().String())
	}
	if len(s.IPs) > 0 {
		s.IP = s.IPs[0]
	}
	return s
}

// choose returns the binding of an interface: the one that it is bound by
// already, or else the one that its spec asks for. The spec alone does not
// decide, since a default may have changed while a guest uses what is there.
func (i Interface) choose(bindings []Binding) Binding {
	for _, b := range bindings {
		if b.Bound(i) {
			return b
		}
	}
	return i.asked
}

// asked returns the one binding that the spec of an interface asks for.
func asked(bindings []Binding, at *field.Path, spec vmi.Interface) (Binding, error) {
	var all []Binding
	for _, b := range bindings {
		if b.Serves(spec) {
			all = append(all, b)
		}
	}
	switch len(all) {
	case 0:
		return nil, invalid(at, "interface %s: its binding is not known", spec.Name)
	case 1:
		return all[0], nil
	default:
		return nil, invalid(at, "interface %s: it has %d bindings", spec.Name, len(all))
	}
}

// linkLocalOfMAC makes the link-local address of a link of IPv6 the one of its MAC.
func linkLocalOfMAC(link string) Sysctl {
	return Sysctl{Key: "net/ipv6/conf/" + link + "/addr_gen_mode", Value: "0"}
}

// noLinkLocal keeps a link that is no end of anything from giving itself a link-local
// address of IPv6.
func noLinkLocal(link string) Sysctl {
	return Sysctl{Key: "net/ipv6/conf/" + link + "/addr_gen_mode", Value: "1"}
}

// notLearnt6 keeps a link from learning addresses and routes from others; the setting is
// what it would learn by.
func notLearnt6(link, setting string) Sysctl {
	return Sysctl{Key: "net/ipv6/conf/" + link + "/" + setting, Value: "0"}
}

// withoutIPv6 keeps a link that is no end of anything from having addresses of IPv6, and
// from taking packets of it.
func withoutIPv6(link string) Sysctl {
	return Sysctl{Key: "net/ipv6/conf/" + link + "/disable_ipv6", Value: "1"}
}

// noEnd are the settings of a tap device: also without its bridge the pod takes no IPv6
// from it and answers no ARP on it. What comes as IPv4 the rules drop.
func noEnd(tap string) []Sysctl {
	return []Sysctl{withoutIPv6(tap), {Key: "net/ipv4/conf/" + tap + "/arp_ignore", Value: "8"}}
}
